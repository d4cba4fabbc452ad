// Random programs give the same numbers however they are run: the reference
// is eager execution on /CPU:0; simulated accelerators run reference kernels.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>

#include "berth/config.h"
#include "berth/device.h"
#include "berth/function.h"
#include "berth/ops/math.h"
#include "conformance/programs/random_program.h"
#include "function/graph_rewrite.h"

namespace berth::conformance {

namespace {

constexpr int kPrograms = 300;
constexpr int kCalls = 2;  // state carries over

enum class How { kEager, kFunction, kUnoptimized, kThreeSlices, kRegions };

struct Mode {
  const char* name;
  How how;
  const char* device;  // of the program as a whole; "" for none
  bool split;          // scopes of their own for the ops
};

using Numbers = std::vector<std::vector<double>>;
using Body = std::function<Tensors(const Tensors&)>;

// Whatever can be cut into slices is, however small.
class CutEverything final : public GraphRewrite {
 public:
  void apply(Graph&) const override {}
  SlicingRule slicing_rule() const override { return kSliceEverything; }
};

Body body_of(const Program& p, const World& w, How how) {
  auto fn = [&p, &w](const Tensors& in) { return run_program(p, w, in); };
  if (how == How::kEager) return fn;
  const bool cut = how == How::kThreeSlices || how == How::kRegions;
  FunctionOptions options{.slices = cut ? 3 : 0,
                          .optimize = how != How::kUnoptimized};
  if (how == How::kRegions) options.rewrite = std::make_shared<CutEverything>();
  return function(fn, options);
}

// Results, and gradients of the call when `taped`.
Tensors call(const Body& body, const World& w, const Tensors& in, bool taped,
             bool control) {
  if (!taped) return body(in);
  GradientTape tape;
  std::vector<Source> sources(in.begin(), in.end());
  for (const Tensor& t : in) tape.watch(t);
  for (const Variable& v : w.variables) sources.push_back(v);
  Tensors results = body(in), targets;
  for (const Tensor& t : results) {
    if (is_floating(t.dtype())) targets.push_back(math::tanh(t));
  }
  const Tensors grads = tape.gradient(
      targets, sources,
      {.unconnected_gradients = control ? UnconnectedGradients::kZero
                                        : UnconnectedGradients::kNone});
  results.insert(results.end(), grads.begin(), grads.end());
  return results;
}

Numbers run(const Program& p, const Mode& mode, bool taped) {
  std::unique_ptr<DeviceGuard> on;
  if (*mode.device) {
    on = std::make_unique<DeviceGuard>(mode.device, Site::here());
  }
  const World w = make_world(p);
  const Body body = body_of(p, w, mode.how);
  Numbers all;
  Tensors results;
  for (int c = 0; c < kCalls; ++c) {
    Tensors in = w.inputs;
    if (c > 0) in[0] = in[0] * 0.9;
    results = call(body, w, in, taped, p.control);
    for (const Variable& v : w.variables) {
      all.push_back(v.value().to_vector<double>());
    }
    for (const Tensor& t : results) {
      all.push_back(t.defined() ? t.to_vector<double>()
                                : std::vector<double>());
    }
  }
  return all;
}

// "" when equal.
std::string difference(const Numbers& a, const Numbers& b, double tolerance) {
  if (a.size() != b.size()) return "another number of results";
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) {
      return fmt::format("result {} has {} elements, not {}", i, b[i].size(),
                         a[i].size());
    }
    for (size_t k = 0; k < a[i].size(); ++k) {
      const double x = a[i][k], y = b[i][k];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (std::fabs(x - y) <= tolerance * (1 + std::fabs(x))) continue;
      return fmt::format("result {}[{}] is {}, not {}", i, k, y, x);
    }
  }
  return "";
}

Program program_of(uint64_t seed, DType dtype) {
  Dice dice(seed * 31 + 5);
  Program p{.seed = seed, .length = static_cast<int>(4 + dice.below(40))};
  p.dtype = dtype;
  p.tapes = dice.chance(70);
  p.writes = dice.chance(80);
  return p;
}

class RandomPrograms : public testing::TestWithParam<Mode> {
 public:
  static void SetUpTestSuite() {
    static bool once = true;
    if (!std::exchange(once, false)) return;
    config::set_simulated_devices("GPUx2");
    config::set_logical_device_configuration(
        config::list_physical_devices("CPU").at(0),
        {{.workers = 3, .shared = true}, {.workers = 2, .shared = true}});
  }

  static void compare(DType dtype, double tolerance, bool control = false) {
    const Mode reference{"", How::kEager, "/CPU:0", false};
    for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
      Program p = program_of(seed, dtype);
      p.control = control;
      const bool taped = seed % 3 == 0;
      const Numbers expected = run(p, reference, taped);
      if (GetParam().split) p.device_seed = seed;
      const Numbers got = run(p, GetParam(), taped);
      EXPECT_EQ(difference(expected, got, tolerance), "")
          << "seed " << seed << (taped ? ", taped" : "");
    }
  }
};

TEST_P(RandomPrograms, GiveTheSameNumbersInFloat32) { compare(float32, 2e-3); }
TEST_P(RandomPrograms, GiveTheSameNumbersInFloat64) { compare(float64, 1e-8); }

TEST_P(RandomPrograms, WithBranchesAndLoopsGiveTheSameNumbers) {
  compare(float64, 1e-8, true);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, RandomPrograms,
    testing::Values(Mode{"function", How::kFunction, "/CPU:0", false},
                    Mode{"unoptimized", How::kUnoptimized, "/CPU:0", false},
                    Mode{"slices", How::kThreeSlices, "/CPU:0", false},
                    Mode{"regions", How::kRegions, "/CPU:0", false},
                    Mode{"cpu1_regions", How::kRegions, "/CPU:1", false},
                    Mode{"split_regions", How::kRegions, "", true},
                    Mode{"sim_eager", How::kEager, "/GPU:0", false},
                    Mode{"sim_function", How::kFunction, "/GPU:1", false},
                    Mode{"split_eager", How::kEager, "", true},
                    Mode{"split_function", How::kFunction, "", true},
                    Mode{"split_unoptimized", How::kUnoptimized, "/GPU:0",
                         true}),
    [](const auto& mode) { return std::string(mode.param.name); });

}  // namespace

}  // namespace berth::conformance
