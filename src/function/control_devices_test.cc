// Branches and loops whose bodies run on several devices. Devices are
// configured once per process, so each test runs in its own process.

#include <gtest/gtest.h>

#include <set>

#include "backends/sim/sim.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "device/gpu_testing.h"
#include "graph/body.h"

namespace berth {
namespace {

using fresh_process::check;

using Floats = std::vector<float>;

struct Pair {
  std::string a, b;
};

Pair two_gpus() {
  test::use_gpus(2);
  return {"/GPU:0", "/GPU:1"};
}
Pair two_cpus() {
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.workers = 2, .shared = true}, {.workers = 2, .shared = true}});
  return {"/CPU:0", "/CPU:1"};
}
Pair host_and_gpu() {
  test::use_gpus(1);
  return {"/CPU:0", "/GPU:0"};
}

// A weight and a counter on each device.
struct State {
  Variable weight, seen_a, seen_b;

  State(const std::string& a, const std::string& b) {
    weight = with_device(b, [] { return Variable(constant(0.5f)); });
    seen_a = with_device(a, [] { return Variable(constant(0.0f)); });
    seen_b = with_device(b, [] { return Variable(constant(0.0f)); });
  }
};

// A loop over both devices with a branch inside. All numbers are small and
// dyadic, so every backend computes them exactly.
Tensors program(const Tensor& x, const Pair& on, const State& s) {
  const auto loop = [&] {
    return while_loop(
        [&](const Tensor& i, const Tensor&) {
          return math::less(i, constant(5));
        },
        [&](const Tensor& i, const Tensor& h) {
          const Tensor t =
              with_device(on.b, [&] { return h * s.weight.value(); });
          const Tensor u = with_device(on.a, [&] { return t + x * 0.5f; });
          with_device(on.a, [&] { s.seen_a.assign_add(math::reduce_sum(t)); });
          const Tensor v = cond(
              math::greater(math::reduce_sum(u), constant(3.0f)),
              [&] { return with_device(on.b, [&] { return u - 1.0f; }); },
              [&] { return with_device(on.a, [&] { return u * 2.0f; }); });
          with_device(on.b, [&] { s.seen_b.assign_add(math::reduce_sum(v)); });
          return std::tuple(i + 1, v);
        },
        std::tuple(constant(0), x), {.max_iterations = 8});
  };
  GradientTape tape;
  tape.watch(x);
  const auto on_a = device(on.a);
  const auto [i, h] = loop();
  const Tensor loss = math::reduce_sum(math::square(h));
  const Tensor g = tape.gradient(loss, x);
  return {i, h, g};
}

Tensor loop_input(int run) {
  Floats v(4);
  for (int i = 0; i < 4; ++i) v[i] = 0.25f * static_cast<float>(i + run - 2);
  return constant(std::span<const float>(v), {4});
}

using Results = std::vector<Floats>;
constexpr int kLoopRuns = 3;

// Launches all runs before reading any result.
template <class Step>
Results results(Step&& step, const State& s) {
  std::vector<Tensors> out;
  for (int r = 0; r < kLoopRuns; ++r) out.push_back(step(loop_input(r)));
  Results list;
  for (const Tensors& t : out) {
    for (const Tensor& x : t) list.push_back(x.to_vector<float>());
  }
  for (const Variable& v : {s.seen_a, s.seen_b}) {
    list.push_back(v.value().to_vector<float>());
  }
  return list;
}

// The devices that the nodes of a graph's bodies are on.
void add_devices(const Graph& g, bool inside, std::set<std::string>* found) {
  for (const Node& n : g.nodes) {
    if (inside && n.op->kind() == OpKind::kCompute)
      found->insert(n.assigned.text());
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      add_devices(body, true, found);
    });
  }
}

void same_as_eager(Pair (*configure)(), int seeds) {
  const Pair on = configure();
  const Pair home{"/CPU:0", "/CPU:0"};
  const State here("/CPU:0", "/CPU:0");
  const Results want =
      results([&](const Tensor& x) { return program(x, home, here); }, here);
  for (int seed = 0; seed < seeds; ++seed) {
    for (Device* d : DeviceManager::get().devices()) {
      if (d->simulated()) sim::set_seed(*d, static_cast<uint64_t>(seed));
    }
    const State there(on.a, on.b);
    auto step =
        function([&](const Tensor& x) { return program(x, on, there); });
    const Results got = results(step, there);
    check(got.size() == want.size(), "as many results");
    for (size_t i = 0; i < got.size(); ++i) {
      check(got[i] == want[i], "result " + std::to_string(i) + " with seed " +
                                   std::to_string(seed));
    }
    std::set<std::string> used;
    add_devices(parse_graph(step.text("place")), false, &used);
    check(used.size() >= 2, "the bodies use both devices");
  }
}

TEST(ControlFlow, BodiesOverTwoGpusGiveWhatEagerGives) {
  IN_A_FRESH_PROCESS(same_as_eager(&two_gpus, 10));
}
TEST(ControlFlow, BodiesOverTwoCoreSetsGiveWhatEagerGives) {
  IN_A_FRESH_PROCESS(same_as_eager(&two_cpus, 3));
}
TEST(ControlFlow, BodiesOverTheHostAndAGpuGiveWhatEagerGives) {
  IN_A_FRESH_PROCESS(same_as_eager(&host_and_gpu, 10));
}

}  // namespace
}  // namespace berth
