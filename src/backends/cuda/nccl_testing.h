// Shared by the tests of sums between cards: fake cards with a fake NCCL, and
// steps of replicas without kernels, which fake cards lack.

#ifndef BERTH_BACKENDS_CUDA_NCCL_TESTING_H_
#define BERTH_BACKENDS_CUDA_NCCL_TESTING_H_

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "backends/cuda/cuda_testing.h"
#include "berth/distribute.h"
#include "collective/testing.h"
#include "conformance/gpu_stand_ins/fake_cuda/fake_nccl.h"
#include "device/device_manager.h"

namespace berth::cuda {

using collective_tests::AllReduceOptions;

// Opened before the plug-in searches. Null when BERTH_NO_FAKE_NCCL says so.
inline const FakeNccl* load_fake_nccl() {
  if (!environment("BERTH_NO_FAKE_NCCL").empty()) return nullptr;
  void* library =
      dlopen(fake_file(BERTH_FAKE_NCCL_FILE).c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr
             ? nullptr
             : static_cast<const FakeNccl*>(dlsym(library, "berth_fake_nccl"));
}
inline const FakeNccl* const kNccl = load_fake_nccl();
// Seconds; a thread may be without a core for one second.
inline constexpr const char* kTimeout = "2";
inline const bool kShortTimeout =
    setenv("BERTH_NCCL_TIMEOUT", kTimeout, 1) == 0;

inline std::string gpu_name(int i) {
  return collective_tests::full_name("GPU", i);
}

// Returns values of replica r: whole numbers, so that sums are exact.
inline std::vector<float> numbers_of(int64_t n, int replica) {
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<float>((static_cast<int>(i) * 7 + replica * 5) % 13);
  }
  return v;
}

// A step in which each of `devices` has some values [n] and needs their sums.
struct SumStep {
  std::vector<std::string> devices;
  std::vector<int64_t> sizes = {5};
  DType dtype = float32;
  AllReduceOptions options = {};
  double timeout_seconds = 0;

  // Arguments: by value, then by device. Outputs: the same.
  Graph graph() const {
    AllReduceOptions o = options;
    for (size_t r = 0; r < devices.size(); ++r) {
      o.owners.push_back(static_cast<int64_t>(r));
      o.replicas.push_back(static_cast<int64_t>(r));
    }
    std::vector<TensorSpec> args;
    for (const int64_t n : sizes) {
      args.insert(args.end(), devices.size(), {Shape{n, 1}, dtype, "x"});
    }
    return collective_tests::trace(args, devices, [&](const Tensors& x) {
      Tensors out;
      for (size_t i = 0; i < sizes.size(); ++i) {
        Tensors pieces;
        for (size_t r = 0; r < devices.size(); ++r) {
          const auto on = device(devices[r]);
          pieces.push_back(reshape(x[i * devices.size() + r], Shape{sizes[i]}));
        }
        const Tensors sums = collective_tests::all_reduce(pieces, o);
        for (size_t r = 0; r < devices.size(); ++r) {
          const auto on = device(devices[r]);
          out.push_back(reshape(sums[r], Shape{1, sizes[i]}));
        }
      }
      return out;
    });
  }

  std::unique_ptr<Plan> plan() const {
    Graph g = graph();
    run_device_free_passes(g);
    lower_collectives(g, timeout_seconds);
    verify(g);
    run_device_free_passes(g);
    place_all(g, real_devices(), true);
    return Plan::build(std::move(g), {.timeout_seconds = timeout_seconds});
  }

  Tensors arguments() const {
    Tensors args;
    const auto on = device("/CPU:0");
    for (const int64_t n : sizes) {
      for (size_t r = 0; r < devices.size(); ++r) {
        const auto v = numbers_of(n, static_cast<int>(r));
        args.push_back(
            cast(constant(std::span<const float>(v), Shape{n, 1}), dtype));
      }
    }
    return args;
  }

  // Returns the sum of a value, which every device must get.
  std::vector<float> sum(size_t value) const {
    std::vector<float> total(static_cast<size_t>(sizes[value]), 0);
    for (size_t r = 0; r < devices.size(); ++r) {
      const auto v = numbers_of(sizes[value], static_cast<int>(r));
      for (size_t k = 0; k < v.size(); ++k) total[k] += v[k];
    }
    return total;
  }
};

inline Tensors run_plan(Plan& plan, const Tensors& args) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : args) in.push_back(&t);
  Tensors out(plan.graph().outputs.size());
  plan.run(in, out);
  return out;
}

inline std::vector<float> on_host(const Tensor& t) {
  const auto on = device("/CPU:0");
  return cast(identity(t), float32).to_vector<float>();
}

// Value r on /GPU:r.
inline distribute::PerReplica on_cards(
    const std::vector<std::vector<float>>& values) {
  Tensors parts;
  for (size_t r = 0; r < values.size(); ++r) {
    const auto on = device(gpu_name(static_cast<int>(r)));
    const Shape shape{static_cast<int64_t>(values[r].size())};
    parts.push_back(constant(std::span<const float>(values[r]), shape));
  }
  return distribute::PerReplica(parts);
}

// Runs the step and throws its error.
inline void expect_sums(const SumStep& step, Plan& plan) {
  const Tensors out = run_plan(plan, step.arguments());
  for (size_t o = 0; o < out.size(); ++o) {
    EXPECT_EQ(out[o].device(), step.devices[o % step.devices.size()]);
    EXPECT_EQ(on_host(out[o]), step.sum(o / step.devices.size()));
  }
}

// Counts the nodes of an op in a plan; for transfers, those between GPUs.
inline std::map<std::string, int> count_ops(const Plan& plan) {
  std::map<std::string, int> counts;
  const Graph& g = plan.graph();
  for (const Node& n : g.nodes) {
    const bool comes_in =
        n.op->name() == "_Transfer" && g[n.inputs[0].node].assigned.is_cpu();
    if (!comes_in) ++counts[n.op->name()];
  }
  return counts;
}

// Four fake GPUs, /GPU:0 to 3, of the plug-in.
class FourCards : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NE(kNccl, nullptr) << BERTH_FAKE_NCCL_FILE;
    kFake->begin("devices=4");
    kNccl->begin("");
    DeviceManager::get();
  }
  // Clears the failures that a test set up.
  void TearDown() override {
    if (IsSkipped() || kNccl == nullptr) return;
    EXPECT_STREQ(kNccl->violations(), "");
    kNccl->begin("");
    reset();
  }

  static void reset() {
    for (int i = 0; i < 4; ++i) gpu(i).reset_error();
  }
  static Device& gpu(int i) {
    return DeviceManager::get().lookup(DeviceName::parse(gpu_name(i)));
  }
  static std::vector<std::string> gpus(int n) {
    std::vector<std::string> names;
    for (int i = 0; i < n; ++i) names.push_back(gpu_name(i));
    return names;
  }
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_TESTING_H_
