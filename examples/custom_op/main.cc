// An op of one's own, outside of Berth: SoftClip(x) = x / (1 + |x| / limit).
//
// Registers schema, shape rule, gradient, split rule and kernels for the CPU
// and for a simulated GPU; then shows that it runs eagerly, traced,
// differentiated twice, split into slices and placed. Exit code 0 when every
// number is right.

#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>

#include "berth/berth.h"
#include "berth/custom_op.h"

namespace {

using namespace berth;  // NOLINT: a program

std::atomic<int> cpu_calls{0}, gpu_calls{0};

template <class T>
void soft_clip(const KernelCall& call) {
  const T limit = static_cast<T>(call.attr<double>("limit"));
  const T* x = call.in[0].as<T>();
  T* y = call.out[0].as<T>();
  for (int64_t i = 0; i < call.in[0].size(); ++i) {
    y[i] = x[i] / (1 + std::abs(x[i]) / limit);
  }
}

void soft_clip_on_cpu(const KernelCall& call) {
  ++cpu_calls;
  call.in[0].dtype == float64 ? soft_clip<double>(call)
                              : soft_clip<float>(call);
}

void soft_clip_on_gpu(const KernelCall& call) {
  ++gpu_calls;
  soft_clip<float>(call);  // the GPU lacks float64
}

void register_soft_clip() {
  register_op("SoftClip")
      .input("x", kFloatingTypes)
      .output("y")
      .attr("limit", 1.0)
      .infer([](InferContext& c) {
        if (c.attr<double>("limit") <= 0) {
          c.fail("limit is " + std::to_string(c.attr<double>("limit")) +
                 "; expected more than 0");
        }
        c.set_output(0, c.dtype(0), c.shape(0));
      })
      // dy / (1 + |x| / limit)^2, by public functions: it can be
      // differentiated again.
      .gradient([](const GradCall& g) {
        const double limit = g.attr<double>("limit");
        return Tensors{g.dy() / math::square(1.0 + math::abs(g.x(0)) / limit)};
      })
      // Cut along any axis: each part of x gives the same part of y.
      .split([](const InferContext& c) {
        std::vector<SplitSignature> rules;
        for (int8_t axis = 0; axis < c.shape(0).rank(); ++axis) {
          rules.push_back({.inputs = {axis}, .outputs = {axis}});
        }
        return rules;
      })
      .doc("x / (1 + |x| / limit).");
  register_kernels("CPU", [](KernelTable& table) {
    table.direct("SoftClip", kFloatingTypes, &soft_clip_on_cpu, "mine");
  });
  register_kernels("GPU", [](KernelTable& table) {
    table.direct("SoftClip", dtype_bit(float32), &soft_clip_on_gpu, "mine");
  });
}

Tensor soft_clip(const Tensor& x, double limit, Site site = Site::here()) {
  return call_op("SoftClip", {x}, {{"limit", limit}}, site)[0];
}

bool all_right = true;

void check(const char* what, bool right) {
  std::printf("%-48s %s\n", what, right ? "ok" : "WRONG");
  all_right = all_right && right;
}

bool near(const Tensor& t, double want) {
  return std::abs(t.item<double>() - want) < 1e-6;
}

// The first line of `text` that holds `part`.
std::string line_with(const std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  if (at == text.npos) return "";
  const size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

void run() {
  config::set_simulated_devices("GPUx1");
  register_soft_clip();
  const auto on_cpu = device("/CPU:0");

  const Tensor x = constant(3.0f);
  check("eager: SoftClip(3, limit 2) = 3 / 2.5", near(soft_clip(x, 2), 1.2));

  auto gradients = function([](const Tensor& x) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    const Tensor y = soft_clip(x, 2);
    const Tensor dy = inner.gradient(y, x);
    return Tensors{y, dy, outer.gradient(dy, x)};
  });
  const Tensors traced = gradients(x);
  check("traced: the same value", near(traced[0], 1.2));
  check("gradient: 1 / (1 + 3/2)^2", near(traced[1], 1 / 6.25));
  check("second derivative: -2/2 / (1 + 3/2)^3", near(traced[2], -1 / 15.625));

  // Large enough to be worth cutting into slices.
  const Tensor big = random::normal({1024, 1024}, {.seed = 1});
  auto sliced =
      function([](const Tensor& x) { return soft_clip(x, 2); }, {.slices = 4});
  const int before = cpu_calls;
  const Tensor a = sliced(big), b = soft_clip(big, 2);
  check("split: slices give the bits of the whole",
        a.to_vector<float>() == b.to_vector<float>());
  std::printf(
      "    %d kernel calls for the slices and the whole; plan:\n    %s\n",
      cpu_calls - before, line_with(sliced.text("plan"), " SoftClip ").c_str());

  auto placed = function([](const Tensor& x) {
    const auto on_gpu = device("/GPU:0");
    return soft_clip(x, 2);
  });
  const int gpu_before = gpu_calls;
  const Tensor y = placed(x);
  check("placed: the GPU's kernel ran, on the GPU",
        near(y, 1.2) && gpu_calls == gpu_before + 1 &&
            y.device().find("GPU:0") != std::string::npos);
  std::printf("    %s\n",
              line_with(placed.text("place"), "= SoftClip(").c_str());

  config::set_soft_device_placement(config::SoftPlacement::kError);
  bool refused = false;
  try {
    const auto on_gpu = device("/GPU:0");
    soft_clip(constant(3.0), 2);
  } catch (const errors::Unimplemented& e) {
    refused = true;
    std::printf("    %s\n", e.what());
  }
  check("float64 has no kernel on the GPU: a named error", refused);
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "custom_op: %s\n", e.what());
    return 1;
  }
  return all_right ? 0 : 1;
}
