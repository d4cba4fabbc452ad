#include "conformance/cudnn_plans/graphs.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "backends/cuda/cudnn_kernels.h"
#include "conformance/gpu_programs/collected.h"

namespace berth::conformance {

namespace {

BerthCudnnGraph image_graph(int32_t what, BerthCudnnType type, int64_t n,
                            int64_t size, int64_t channels) {
  BerthCudnnGraph g{};
  g.what = what;
  g.type = type;
  g.n = n, g.h = size, g.w = size, g.c = channels;
  return g;
}

// Windows k x k, `stride` apart, with half a window of padding.
BerthCudnnGraph conv_graph(int32_t what, BerthCudnnType type, int64_t n,
                           int64_t size, int64_t in, int64_t out, int64_t k,
                           int64_t stride) {
  BerthCudnnGraph g = image_graph(what, type, n, size, in);
  g.kh = g.kw = k;
  g.oh = g.ow = (size + 2 * (k / 2) - k) / stride + 1;
  g.o = out;
  g.groups = 1;
  for (int i = 0; i < 2; ++i) {
    g.stride[i] = stride;
    g.dilation[i] = 1;
    g.pad_before[i] = g.pad_after[i] = k / 2;
  }
  return g;
}

BerthCudnnGraph norm_graph(int32_t what, BerthCudnnType type, int64_t rows,
                           int64_t channels) {
  BerthCudnnGraph g = image_graph(what, type, rows, 1, channels);
  g.epsilon = 1e-3;
  return g;
}

class ResNet {
 public:
  ResNet(int64_t batch, BerthCudnnType type) : batch_(batch), type_(type) {}

  std::vector<NamedGraph> graphs() {
    conv(224, 3, 64, 7, 2);
    int64_t size = 56, in = 64;
    for (int stage = 0; stage < 4; ++stage) {
      const int64_t narrow = int64_t{64} << stage, wide = 4 * narrow;
      const int64_t stride = stage == 0 ? 1 : 2;
      conv(size, in, narrow, 1, 1);
      conv(size, narrow, narrow, 3, stride);
      conv(size, in, wide, 1, stride);
      size /= stride;
      conv(size, narrow, wide, 1, 1);
      conv(size, wide, narrow, 1, 1);
      conv(size, narrow, narrow, 3, 1);
      in = wide;
    }
    return std::move(graphs_);
  }

 private:
  void conv(int64_t size, int64_t in, int64_t out, int64_t k, int64_t stride) {
    for (int what = 0; what < 3; ++what) {
      add(fmt::format("conv {} {}x{} {}->{} {}x{}/{}", what, size, size, in,
                      out, k, k, stride),
          conv_graph(what, type_, batch_, size, in, out, k, stride));
    }
    const int64_t rows = batch_ * (size / stride) * (size / stride);
    add(fmt::format("norm {}x{}", rows, out),
        norm_graph(BERTH_CUDNN_BATCH_NORM, type_, rows, out));
    add(fmt::format("norm gradient {}x{}", rows, out),
        norm_graph(BERTH_CUDNN_BATCH_NORM_GRAD, type_, rows, out));
  }
  void add(std::string name, const BerthCudnnGraph& g) {
    if (names_.insert(name).second) graphs_.push_back({std::move(name), g});
  }

  const int64_t batch_;
  const BerthCudnnType type_;
  std::set<std::string> names_;
  std::vector<NamedGraph> graphs_;
};

}  // namespace

std::vector<NamedGraph> suite_graphs() {
  std::vector<NamedGraph> graphs;
  for (const auto& [name, op] : collected_library_ops()) {
    const BerthCudnnGraph g = cuda::cudnn_graph(op, false);
    if (g.what >= 0) graphs.push_back({name, g});
  }
  return graphs;
}

std::vector<NamedGraph> resnet50_graphs(int64_t batch, BerthCudnnType type) {
  return ResNet(batch, type).graphs();
}

std::vector<NamedGraph> fused_graphs(BerthCudnnType type) {
  std::vector<NamedGraph> graphs;
  const auto add = [&](const char* name, BerthCudnnGraph g, int32_t bias,
                       int32_t residual, int32_t relu) {
    g.bias = bias, g.residual = residual, g.relu = relu;
    graphs.push_back({name, g});
  };
  const BerthCudnnGraph conv =
      conv_graph(BERTH_CUDNN_CONV, type, 128, 56, 64, 64, 3, 1);
  add("conv relu", conv, 0, 0, 1);
  add("conv bias", conv, 1, 0, 0);
  add("conv bias relu", conv, 1, 0, 1);
  add("conv bias residual relu", conv, 1, 1, 1);
  const BerthCudnnGraph norm =
      norm_graph(BERTH_CUDNN_BATCH_NORM, type, 128 * 56 * 56, 64);
  add("norm relu", norm, 0, 0, 1);
  add("norm residual relu", norm, 0, 1, 1);
  return graphs;
}

std::vector<NamedGraph> attention_graphs(int64_t batch, int64_t length,
                                         DType dtype) {
  const Shape x{batch, 12, length, 64}, sums{batch, 12, length};
  std::vector<NamedGraph> graphs;
  for (const bool causal : {false, true}) {
    const AttrsRef attrs(
        {{"scale", 1 / std::sqrt(64.0)}, {"is_causal", causal}});
    const std::vector<SpecView> in{{dtype, &x}, {dtype, &x}, {dtype, &x}};
    std::vector<SpecView> all = in;
    for (const SpecView& s :
         {SpecView{dtype, &x}, SpecView{float32, &sums}, SpecView{dtype, &x}}) {
      all.push_back(s);
    }
    for (const bool grad : {false, true}) {
      const char* const op =
          grad ? "ScaledDotProductAttentionGrad" : "ScaledDotProductAttention";
      const auto asked = asked_of_library(op, attrs, grad ? all : in);
      if (!asked) continue;
      graphs.push_back({fmt::format("{} causal {}", op, causal),
                        cuda::cudnn_graph(*asked, false)});
    }
  }
  return graphs;
}

std::vector<NamedGraph> wide_attention_gradients(int64_t batch,
                                                 int64_t length) {
  std::vector<NamedGraph> graphs;
  for (const bool causal : {false, true}) {
    gpu::LibraryOp op{gpu::LibraryOp::What::kAttentionGrad, float32};
    op.attention = {batch, 12, length, length, 64, 64, causal, 0.125};
    graphs.push_back(
        {fmt::format("causal {}", causal), cuda::cudnn_graph(op, false)});
  }
  return graphs;
}

}  // namespace berth::conformance
