#include "backends/cuda/cudnn_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "backends/cuda/cubin_cache.h"
#include "backends/cuda/cuda_card.h"
#include "backends/cuda/cuda_queue.h"
#include "backends/cuda/cudnn_library.h"
#include "backends/gpu/queue_stream.h"
#include "base/environment.h"
#include "berth/errors.h"

namespace berth::cuda {

// The library's view of a card, which its plans keep.
class CudnnCard {
 public:
  // Throws errors::Unavailable with the library's message.
  CudnnCard(const BerthCudnnApi& api, CudaCard& card)
      : api_(api),
        card_(card),
        cache_(CubinCache::default_folder("cudnn"), "cudnn plan") {
    const CudaCard::Current here(card);
    char why[BERTH_CUDNN_WHY_BYTES] = "";
    if (api.make_card(nullptr, card.architecture(), &handle_, why) != 0) {
      throw errors::Unavailable(why);
    }
    key_.resize(api.card_key(handle_, nullptr, 0));
    if (key_.empty()) return;
    api.card_key(handle_, key_.data(), key_.size());
    key_.pop_back();
  }
  ~CudnnCard() {
    try {
      const CudaCard::Current here(card_);
      api_.drop_card(handle_);
    } catch (const errors::Error&) {
      // a lost card can take nothing back
    }
  }
  CudnnCard(const CudnnCard&) = delete;
  CudnnCard& operator=(const CudnnCard&) = delete;

  const BerthCudnnApi& api() const { return api_; }
  CudaCard& card() const { return card_; }

  // Returns null, with the library's message, when it has no plan. Asking takes
  // up to a second, so a graph that was refused once is not asked for again.
  BerthCudnnPlan* plan(const BerthCudnnGraph& graph, std::string* why) {
    const std::string key = key_of(graph);
    {
      std::lock_guard lock(mutex_);
      const auto it = refused_.find(key);
      if (it != refused_.end()) {
        *why = it->second;
        return nullptr;
      }
    }
    const CudaCard::Current here(card_);
    if (BerthCudnnPlan* kept = load(graph, key)) return kept;
    char reason[BERTH_CUDNN_WHY_BYTES] = "";
    BerthCudnnPlan* plan = nullptr;
    if (api_.make_plan(handle_, &graph, &plan, reason) != 0) {
      *why = reason;
      std::lock_guard lock(mutex_);
      refused_.emplace(key, reason);
      return nullptr;
    }
    size_t bytes = 0;
    const uint8_t* data = keeps() ? api_.save_plan(plan, &bytes) : nullptr;
    if (data != nullptr && bytes > 0) {
      cache_.keep(key, {reinterpret_cast<const char*>(data), bytes});
    }
    return plan;
  }

 private:
  // A card that cannot be identified keeps nothing.
  bool keeps() const { return !key_.empty(); }
  BerthCudnnPlan* load(const BerthCudnnGraph& graph, const std::string& key) {
    if (!keeps()) return nullptr;
    const auto kept = cache_.find(key);
    if (!kept) return nullptr;
    char ignored[BERTH_CUDNN_WHY_BYTES] = "";
    BerthCudnnPlan* plan = nullptr;
    const auto* data = reinterpret_cast<const uint8_t*>(kept->data());
    // A plan that does not load is made again.
    if (api_.load_plan(handle_, &graph, data, kept->size(), &plan, ignored)) {
      return nullptr;
    }
    return plan;
  }

  std::string key_of(const BerthCudnnGraph& g) const {
    std::string key =
        fmt::format("cudnn plan {} {}\n", BERTH_CUDNN_API_VERSION, key_);
    for (const int64_t x : {int64_t{g.what},
                            int64_t{g.type},
                            int64_t{g.tf32},
                            int64_t{g.bias},
                            int64_t{g.residual},
                            int64_t{g.relu},
                            int64_t{g.causal},
                            g.n,
                            g.h,
                            g.w,
                            g.c,
                            g.kh,
                            g.kw,
                            g.oh,
                            g.ow,
                            g.o,
                            g.groups,
                            g.stride[0],
                            g.stride[1],
                            g.dilation[0],
                            g.dilation[1],
                            g.pad_before[0],
                            g.pad_before[1],
                            g.pad_after[0],
                            g.pad_after[1],
                            g.batch,
                            g.heads,
                            g.s,
                            g.t,
                            g.d,
                            g.e}) {
      key += fmt::format("{} ", x);
    }
    return key + fmt::format("{:a} {:a}", g.epsilon, g.scale);
  }

  const BerthCudnnApi& api_;
  CudaCard& card_;
  const CubinCache cache_;
  BerthCudnnCard* handle_ = nullptr;
  std::string key_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> refused_;  // and why
};

namespace {

class CudnnKernel final : public gpu::Kernel {
 public:
  CudnnKernel(std::shared_ptr<CudnnCard> card, BerthCudnnPlan* plan)
      : card_(std::move(card)), plan_(plan) {}
  ~CudnnKernel() override {
    try {
      const CudaCard::Current here(card_->card());
      card_->api().drop_plan(plan_);
    } catch (const errors::Error&) {
      // as above
    }
  }
  CudnnKernel(const CudnnKernel&) = delete;
  CudnnKernel& operator=(const CudnnKernel&) = delete;

  bool may_refuse() const override { return true; }

  void launch(gpu::Queue& queue, const gpu::Grid& grid,
              const gpu::KernelArg* args, int num_args) override {
    if (!try_launch(queue, grid, args, num_args)) {
      fail(fmt::format("an argument is not aligned to {} bytes",
                       gpu::kLibraryAlignment));
    }
  }

  bool try_launch(gpu::Queue& queue, const gpu::Grid&,
                  const gpu::KernelArg* args, int num_args) override {
    const BerthCudnnApi& api = card_->api();
    const int wanted = api.plan_arguments(plan_);
    std::array<void*, BERTH_CUDNN_MOST_ARGUMENTS> addresses{};
    if (num_args < wanted || num_args > static_cast<int>(addresses.size())) {
      fail(fmt::format("{} arguments; expected {}", num_args, wanted));
    }
    for (int i = 0; i < num_args; ++i) {
      const auto k = static_cast<size_t>(i);
      std::memcpy(&addresses[k], args[i].value, sizeof(void*));
      if (reinterpret_cast<uintptr_t>(addresses[k]) % gpu::kLibraryAlignment) {
        return false;
      }
    }
    void* scratch =
        num_args > wanted ? addresses[static_cast<size_t>(wanted)] : nullptr;
    const CudaCard::Current here(card_->card());
    char why[BERTH_CUDNN_WHY_BYTES] = "";
    if (api.run_plan(plan_, static_cast<CudaQueue&>(queue).appending(),
                     addresses.data(), wanted, scratch, why) != 0) {
      fail(why);
    }
    return true;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw errors::Internal(
        fmt::format("cuDNN, {}: {}; BERTH_CUDNN=off uses Berth's own kernels",
                    card_->api().plan_name(plan_), why));
  }

  const std::shared_ptr<CudnnCard> card_;
  BerthCudnnPlan* const plan_;
};

// BerthCudnnType; -1: none.
int32_t cudnn_type(DType dtype) {
  if (dtype == float32) return BERTH_CUDNN_FLOAT32;
  if (dtype == bfloat16) return BERTH_CUDNN_BFLOAT16;
  return dtype == float16 ? BERTH_CUDNN_FLOAT16 : -1;
}

// Returns the padding after the last pixel that a window reads.
int64_t pad_after(int64_t in, int64_t out, int64_t window, int64_t stride,
                  int64_t dilation, int64_t before) {
  const int64_t end = (out - 1) * stride + (window - 1) * dilation + 1;
  return std::max<int64_t>(0, end - before - in);
}

void set_conv(BerthCudnnGraph& g, const gpu::ConvGeometry& v) {
  g.n = v.n, g.h = v.h, g.w = v.w, g.c = v.c;
  g.kh = v.kh, g.kw = v.kw;
  g.oh = v.oh, g.ow = v.ow, g.o = v.o;
  g.groups = v.groups;
  for (int i = 0; i < 2; ++i) {
    g.stride[i] = v.stride[i];
    g.dilation[i] = v.dilation[i];
    g.pad_before[i] = v.pad[i];
  }
  g.pad_after[0] =
      pad_after(v.h, v.oh, v.kh, v.stride[0], v.dilation[0], v.pad[0]);
  g.pad_after[1] =
      pad_after(v.w, v.ow, v.kw, v.stride[1], v.dilation[1], v.pad[1]);
}

void set_attention(BerthCudnnGraph& g, const gpu::AttentionGeometry& a) {
  g.batch = a.batch, g.heads = a.heads;
  g.s = a.s, g.t = a.t, g.d = a.d, g.e = a.e;
  g.causal = a.causal;
  g.scale = a.scale;
}

int32_t cudnn_what(gpu::LibraryOp::What what) {
  using What = gpu::LibraryOp::What;
  switch (what) {
    case What::kConv:
      return BERTH_CUDNN_CONV;
    case What::kConvImageGrad:
      return BERTH_CUDNN_CONV_IMAGE_GRAD;
    case What::kConvFilterGrad:
      return BERTH_CUDNN_CONV_FILTER_GRAD;
    case What::kBatchNorm:
      return BERTH_CUDNN_BATCH_NORM;
    case What::kBatchNormGrad:
      return BERTH_CUDNN_BATCH_NORM_GRAD;
    case What::kAttention:
      return BERTH_CUDNN_ATTENTION;
    case What::kAttentionGrad:
      return BERTH_CUDNN_ATTENTION_GRAD;
  }
  return -1;
}

// Runs a small attention. Returns why it fails, "" when it does not: plans are
// made without the CUDA runtime, and their runs look for it.
std::string try_attention(const std::shared_ptr<CudnnCard>& on) {
  constexpr size_t kOperand = 4096, kOperands = 5;
  gpu::LibraryOp op{gpu::LibraryOp::What::kAttention, bfloat16};
  op.attention = {1, 1, 16, 16, 64, 64};
  CudaCard& card = on->card();
  try {
    std::string why;
    BerthCudnnPlan* plan = on->plan(cudnn_graph(op, false), &why);
    if (plan == nullptr) return why;
    CudnnKernel kernel(on, plan);
    const size_t bytes = kOperands * kOperand + on->api().plan_scratch(plan);
    const gpu::HeldMemory memory(card.memory_source(), bytes);
    if (memory.data() == nullptr) return "no memory is left for a trial";
    const auto queue = card.make_queue();
    queue->fill(memory.data(), 0, bytes);
    std::array<void*, kOperands + 1> addresses;
    std::array<gpu::KernelArg, kOperands + 1> args;
    for (size_t i = 0; i <= kOperands; ++i) {
      addresses[i] = memory.data() + i * kOperand;
      args[i] = {&addresses[i]};
    }
    kernel.launch(*queue, {}, args.data(), kOperands + 1);
    const gpu::Mark mark = queue->mark();
    queue->await(mark);
    const bool passed = queue->passed(mark);
    queue->release(mark);
    return passed ? "" : "a trial does not end";
  } catch (const errors::Error& e) {
    return e.what();
  }
}

}  // namespace

BerthCudnnGraph cudnn_graph(const gpu::LibraryOp& op, bool tf32) {
  BerthCudnnGraph g{};
  g.what = cudnn_what(op.what);
  g.type = cudnn_type(op.dtype);
  if (g.type < 0) g.what = -1;
  g.tf32 = tf32;
  if (g.what <= BERTH_CUDNN_CONV_FILTER_GRAD) {
    set_conv(g, op.conv);
  } else if (g.what >= BERTH_CUDNN_ATTENTION) {
    set_attention(g, op.attention);
  } else {
    g.n = op.rows, g.h = 1, g.w = 1, g.c = op.channels;
    g.epsilon = op.epsilon;
  }
  return g;
}

CudnnKernels::CudnnKernels() = default;
CudnnKernels::~CudnnKernels() = default;

void CudnnKernels::use(const BerthCudnnApi* api) {
  std::lock_guard lock(mutex_);
  api_ = api;
  looked_ = true;
}

std::string CudnnKernels::why() const {
  std::lock_guard lock(mutex_);
  return why_;
}

std::shared_ptr<CudnnCard> CudnnKernels::card_of(CudaCard& card) {
  std::lock_guard lock(mutex_);
  if (!looked_) {
    looked_ = true;
    api_ = cudnn_library(&why_, &is_built_);
  }
  if (card_ || api_ == nullptr) return card_;
  try {
    card_ = std::make_shared<CudnnCard>(*api_, card);
  } catch (const errors::Error& e) {
    why_ = e.what();
    api_ = nullptr;  // nor will it work later
  }
  return card_;
}

std::string CudnnKernels::why_no_attention(CudaCard& card) {
  const std::shared_ptr<CudnnCard> on = card_of(card);
  if (!on) return is_built_ ? why() : "";
  std::lock_guard lock(attention_mutex_);
  if (!tried_attention_) {
    tried_attention_ = true;
    no_attention_ = try_attention(on);
  }
  return no_attention_;
}

gpu::LibraryKernel CudnnKernels::kernel(CudaCard& card,
                                        const gpu::LibraryOp& op) {
  const BerthCudnnGraph graph =
      cudnn_graph(op, environment_switch("BERTH_TF32", false));
  if (graph.what < 0) return {};
  const std::shared_ptr<CudnnCard> on = card_of(card);
  if (!on) return {};
  std::string why;
  if (graph.what >= BERTH_CUDNN_ATTENTION) {
    why = why_no_attention(card);
    if (!why.empty()) {
      std::lock_guard lock(mutex_);
      why_ = why;
      return {};
    }
  }
  BerthCudnnPlan* plan = on->plan(graph, &why);
  if (plan == nullptr) {
    std::lock_guard lock(mutex_);
    why_ = why;
    return {};
  }
  auto kernel = std::make_unique<CudnnKernel>(on, plan);
  return {std::move(kernel), on->api().plan_scratch(plan)};
}

}  // namespace berth::cuda
