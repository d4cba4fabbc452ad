// Functions placed by the planner: results are equal, limits are kept, and what
// runs is what was planned. Costs are declared or estimated, so plans repeat.

#include "function/auto_place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "berth/custom_op.h"
#include "berth/debugging.h"
#include "berth/distribute.h"
#include "device/device_manager.h"
#include "graph/graph.h"
#include "graph/graph_text.h"
#include "tensor/variable_state.h"

namespace berth {
namespace {

using fresh_process::check;
using fresh_process::need_cores;
using fresh_process::refuses;

// Ignore what this machine has measured.
const bool kNoStore = setenv("BERTH_CACHE_DIR", "/dev/null/none", 1) == 0;

placement::Auto quick(bool keep_scopes = true) {
  placement::Auto a;
  a.effort = placement::moves(20'000);
  a.keep_scopes = keep_scopes;
  a.measure = false;
  return a;
}

// What ran, in execution order: marks by the device of their thread.
std::mutex log_mutex;
std::vector<int64_t> marks_run;

void mark(const KernelCall& call) {
  {
    const std::lock_guard lock(log_mutex);
    marks_run.push_back(call.attr<int64_t>("id"));
  }
  const float* x = call.in[0].as<float>();
  for (int64_t i = 0; i < call.in[0].size(); ++i) {
    call.out[0].as<float>()[i] = 0.5f * x[i] + 1;
  }
}

// Before any device exists: later registrations are refused.
const bool kMarkRegistered = [] {
  register_op("TestMark")
      .input("x", dtype_bit(float32))
      .attr("id", int64_t{0})
      .output("y")
      .infer(&infer_same_as_0)
      .cost([](const InferContext&) {
        return Cost{5e8, 1e4};
      })
      .not_differentiable();
  for (const char* type : {"CPU", "GPU"}) {
    register_kernels(type, [](KernelTable& table) {
      table.direct("TestMark", dtype_bit(float32), &mark, "test");
    });
  }
  return true;
}();

Tensor marked(const Tensor& x, int64_t id) {
  return call_op("TestMark", {x}, {{"id", id}})[0];
}

// Four chains that meet: work for several devices.
Tensor chains(const Tensor& x, int n = 4, int length = 3) {
  int64_t id = 0;
  Tensor sum;
  for (int c = 0; c < n; ++c) {
    Tensor y = x;
    for (int k = 0; k < length; ++k) y = marked(y, id++);
    sum = sum.defined() ? sum + y : y;
  }
  return sum;
}

std::vector<float> reference(float x, int n = 4, int length = 3) {
  float y = x;
  for (int k = 0; k < length; ++k) y = 0.5f * y + 1;
  return {y * static_cast<float>(n)};
}

// The ids of marks per device, in the order of the placed graph: the plan's.
std::map<std::string, std::vector<int64_t>> planned_order(
    const std::string& text, std::map<int64_t, std::string>* device) {
  std::map<std::string, std::vector<int64_t>> order;
  const Graph g = parse_graph(text);
  for (const Node& n : g.nodes) {
    if (n.op->name() != "TestMark") continue;
    const auto id = n.op->attr<int64_t>(n.attrs.get(), "id");
    order[n.assigned.text()].push_back(id);
    (*device)[id] = n.assigned.text();
  }
  return order;
}

void runs_in_planned_order(const char* devices, size_t fewest) {
  need_cores(4);
  config::set_device_list(devices);
  auto f = function([](const Tensor& x) { return chains(x, 6, 4); },
                    {.name = "marks", .placement = quick()});
  const Tensor x = fill({1}, 3.f);
  for (int run = 0; run < 20; ++run) {
    marks_run.clear();
    check(f(x).to_vector<float>() == reference(3, 6, 4), "the result");
    std::map<int64_t, std::string> device;
    const auto planned = planned_order(f.text("place"), &device);
    check(planned.size() >= fewest, "several devices have work");
    std::map<std::string, std::vector<int64_t>> ran;
    for (const int64_t id : marks_run) ran[device[id]].push_back(id);
    check(ran == planned, "each device ran its marks in the plan's order");
  }
}

TEST(AutoPlace, EachDeviceRunsItsOpsInThePlannedOrder) {
  IN_A_FRESH_PROCESS(runs_in_planned_order("CPUx1,GPUx2", 2));
  IN_A_FRESH_PROCESS(runs_in_planned_order("CPUx2", 2));
  IN_A_FRESH_PROCESS(runs_in_planned_order("CPU[0],CPU[1-3]", 2));
}

// Without a plan, one device first computes what nothing is waiting for.
void order_that_pays() {
  config::set_device_list("CPUx1,GPUx2");
  const auto step = [](const Tensor& x) {
    Tensor late, early;
    {
      const auto on = device("/GPU:0");
      late = marked(x, 1);
      early = marked(x, 2);
    }
    const auto on = device("/GPU:1");
    return marked(marked(early, 3), 4) + late;
  };
  const Tensor x = fill({1}, 3.f);
  const auto first_of = [&](const placement::Policy& policy) {
    auto f = function(step, {.placement = policy});
    marks_run.clear();
    f(x).item<float>();
    const auto at = [](int64_t id) {
      return std::find(marks_run.begin(), marks_run.end(), id);
    };
    return at(1) < at(2) ? 1 : 2;
  };
  check(first_of("rules") == 1, "program order");
  check(first_of(quick()) == 2, "the planned order");
}

TEST(AutoPlace, TheOrderThatPaysIsTheOneThatRuns) {
  IN_A_FRESH_PROCESS(order_that_pays());
}

// The rules run an update as soon as they can.
void updates_wait_for_their_turn() {
  config::set_device_list("CPUx1,GPUx2");
  const Variable v = with_device(
      "/GPU:0", [] { return Variable(zeros({1 << 20}), {.name = "v"}); });
  const Tensor more = with_device("/GPU:0", [] { return ones({1 << 20}); });
  const auto step = [&](const Tensor& x, const Tensor& g) {
    Tensor early;
    {
      const auto on = device("/GPU:0");
      v.assign_add(g);
      early = marked(x, 1);
    }
    const auto on = device("/GPU:1");
    return marked(early, 2);
  };
  const auto update_is_first = [&](const placement::Policy& policy) {
    auto f = function(step, {.placement = policy});
    f(fill({1}, 3.f), more).item<float>();
    const std::string plan = f.text("plan");
    return plan.find("AssignAddVariableOp") < plan.find(" TestMark ");
  };
  check(update_is_first("rules"), "by rules");
  check(!update_is_first(quick()), "planned");
  check(v.value().to_vector<float>()[7] == 2, "both were made");
}

TEST(AutoPlace, UpdatesRunWhereTheyStandInThePlan) {
  IN_A_FRESH_PROCESS(updates_wait_for_their_turn());
}

void uses_devices_that_help() {
  config::set_device_list("CPUx1,GPUx2");
  const Tensor x = fill({1}, 3.f);
  auto rules = function([](const Tensor& x) { return chains(x); });
  auto planned = function([](const Tensor& x) { return chains(x); },
                          {.name = "step", .placement = quick()});
  check(rules(x).to_vector<float>() == planned(x).to_vector<float>(), "equal");
  check(rules.placement().devices.size() == 1, "by rules one device");
  check(planned.placement().devices.size() >= 2, "by plan several");
  check(rules.placement().plan.empty(), "rules promise nothing");
  const std::string plan = planned.placement().plan;
  check(plan.starts_with("Planned step: "), plan);
  check(plan.find("no plan is under") != plan.npos, plan);
  check(plan.ends_with("; times of simulated devices are simulated"), plan);
  check(planned.placement().estimated_step_us <
            0.8 * rules.placement().estimated_step_us,
        "it is faster");
  const placement::Explanation e = planned.explain("TestMark");
  check(e.rule == "planned", e.str());
  check(e.chain.back().text.find("was planned on") != std::string::npos,
        e.str());
  check(e.chain.back().text.ends_with(" us, simulated"), e.str());
}

TEST(AutoPlace, UsesDevicesThatHelpAndSaysWhatItPromises) {
  IN_A_FRESH_PROCESS(uses_devices_that_help());
}

void scopes_bind() {
  config::set_device_list("CPUx1,GPUx2");
  const Tensor x = fill({1}, 3.f);
  const auto pinned = [](const Tensor& x) {
    const auto on = device("/GPU:1");
    return chains(x);
  };
  auto kept = function(pinned, {.placement = quick()});
  kept(x);
  for (const placement::OpRow& op : kept.placement().ops) {
    check(op.device.ends_with("GPU:1"), op.op + " stays");
  }
  auto freed = function(pinned, {.placement = quick(false)});
  freed(x);
  check(freed.placement().devices.size() >= 2, "scopes are a suggestion");
  for (const char* where : {"/GPU:0", "/GPU:1", "/CPU:0"}) {
    auto block = function(
        [where](const Tensor& x) {
          const auto keep = placement::contract({.stays_on = where});
          return marked(marked(x, 1), 2);
        },
        {.placement = quick()});
    block(x);
    check(block.placement().device_of("TestMark").ends_with(where + 1),
          "contracts of blocks bind");
  }
  auto contracted =
      function([](const Tensor& x) { return chains(x); },
               {.contract = placement::Contract{.stays_on = "/GPU:0"},
                .placement = quick()});
  contracted(x);  // a broken contract throws
  check(contracted.placement().device_of("TestMark").ends_with("GPU:0"),
        "contracts bind");
}

TEST(AutoPlace, ScopesAndContractsBind) { IN_A_FRESH_PROCESS(scopes_bind()); }

void missing_kernels() {
  setenv("BERTH_SIM_MISSING", "MatMul", 1);
  config::set_device_list("CPUx1,GPUx2");
  auto f = function(
      [](const Tensor& x) { return math::reduce_sum(matmul(exp(x), x)); },
      {.placement = quick()});
  f(ones({8, 8}));
  check(f.placement().device_of("MatMul").ends_with("CPU:0"), "the CPU has it");
}

TEST(AutoPlace, OpsRunWhereTheirKernelsAre) {
  IN_A_FRESH_PROCESS(missing_kernels());
}

void policy_is_part_of_the_key() {
  config::set_device_list("CPUx1,GPUx2");
  const Tensor x = fill({1}, 3.f);
  auto f = function([](const Tensor& x) { return chains(x); });
  f(x);
  check(f.placement().plan.empty(), "rules to begin with");
  check(config::get_placement_policy() == "rules", "the default");
  config::set_placement_policy(quick());
  f(x);
  check(!f.placement().plan.empty(), "planned after the policy changed");
  check(f.num_traces() == 1, "not traced again");
  config::set_placement_policy("rules");
  f(x);
  check(f.placement().plan.empty(), "by rules again");
  auto own = function([](const Tensor& x) { return chains(x); },
                      {.placement = "auto"});
  check(own(x).to_vector<float>() == reference(3), "an own policy wins");
  check(!own.placement().plan.empty(), "planned");
  refuses<errors::InvalidArgument>([] { config::set_placement_policy("fast"); },
                                   "\"fast\"");
  refuses<errors::InvalidArgument>([] { placement::moves(0); }, "positive");
}

TEST(AutoPlace, ThePolicyIsPartOfTheCacheKey) {
  IN_A_FRESH_PROCESS(policy_is_part_of_the_key());
}

// Three weights, two of them used together, and a step that trains them.
struct PlannedNet {
  Variable a{ones({16, 16}), {.name = "a"}};
  Variable b{ones({16, 16}), {.name = "b"}};

  Tensor step(const Tensor& x) const {
    GradientTape tape;
    Tensor y = x;
    for (int k = 0; k < 3; ++k) y = math::tanh(matmul(y, a) * 0.1f);
    Tensor z = x;
    for (int k = 0; k < 3; ++k) z = math::tanh(matmul(z, b) * 0.2f);
    const Tensor loss = math::reduce_mean(square(y - z - 1.f));
    const Tensors g = tape.gradient(loss, std::vector<Variable>{a, b});
    a.assign_sub(g[0] * 0.1f);
    b.assign_sub(g[1] * 0.1f);
    return loss;
  }
};

std::vector<float> losses_of(PlannedNet& net, const placement::Policy& policy) {
  auto f = function([&](const Tensor& x) { return net.step(x); },
                    {.name = "train", .placement = policy});
  std::vector<float> losses;
  for (int k = 0; k < 5; ++k) losses.push_back(f(ones({4, 16})).item<float>());
  return losses;
}

void trains_alike(const char* devices) {
  need_cores(4);
  config::set_device_list(devices);
  PlannedNet by_rules, planned;
  const auto a = losses_of(by_rules, "rules");
  const auto b = losses_of(planned, quick());
  for (size_t i = 0; i < a.size(); ++i) {
    check(std::abs(a[i] - b[i]) <= 1e-6f * std::abs(a[i]), "the same losses");
  }
  const auto wa = by_rules.a.value().to_vector<float>();
  const auto wp = planned.a.value().to_vector<float>();
  for (size_t i = 0; i < wa.size(); ++i) {
    check(std::abs(wa[i] - wp[i]) <= 1e-6f, "the same weights");
  }
}

TEST(AutoPlace, TrainsAsWithoutAPlan) {
  IN_A_FRESH_PROCESS(trains_alike("CPUx2"));
  IN_A_FRESH_PROCESS(trains_alike("CPUx1,GPUx2"));
  IN_A_FRESH_PROCESS(trains_alike("CPUx2,GPUx1"));
}

void variables_move_once() {
  config::set_device_list("CPUx1,GPUx1");
  const Tensor big = ones({512, 512});
  Variable fresh = with_device("/CPU:0", [&] { return Variable(big); });
  check(fresh.device().ends_with("CPU:0"), "made there");
  check(variable_state(fresh.handle()).asked, "because a scope said so");
  const Tensor value = with_device("/CPU:0", [&] { return identity(big); });
  Variable free(value);  // stays with its value: no device requested
  const Tensor before = free.value();
  const auto work = [&](const Tensor& x) {
    Tensor y = x;
    for (int k = 0; k < 4; ++k) y = matmul(y, free) * 0.001f;
    return math::reduce_sum(y);
  };
  auto f = function(work, {.placement = quick()});
  f(big);
  check(free.device().ends_with("GPU:0"), "it moved to the faster device");
  check(before.to_vector<float>() == big.to_vector<float>(), "snapshots live");
  check(free.value().to_vector<float>() == big.to_vector<float>(), "its value");
  check(fresh.device().ends_with("CPU:0"), "others did not");
  // The plan embeds its address, so it cannot move again.
  check(!move_variable(free.handle(), DeviceManager::get().lookup(
                                          DeviceName::parse("/CPU:0"))),
        "held by the plan");
  auto g =
      function([&](const Tensor& x) { return math::reduce_sum(x * fresh); },
               {.placement = quick()});
  g(big);
  check(fresh.device().ends_with("CPU:0"), "a scope binds variables too");
}

TEST(AutoPlace, FreshVariablesMoveToWhereThePlanWantsThem) {
  IN_A_FRESH_PROCESS(variables_move_once());
}

void limits_are_kept() {
  const config::PhysicalDevice gpu = [] {
    config::set_simulated_devices("GPUx1");
    return config::list_physical_devices("GPU")[0];
  }();
  config::set_logical_device_configuration(
      gpu, {{.memory_limit_mb = 2}, {.memory_limit_mb = 64}});
  const auto work = [](const Tensor& x) {
    Tensor y = x;
    Tensors all;
    for (int k = 0; k < 6; ++k) all.push_back(y = matmul(y, x) * 0.01f);
    for (const Tensor& t : all) y = y + t;
    return math::reduce_sum(y);
  };
  auto f = function(work, {.placement = quick()});
  f(ones({400, 400}));  // 640 kB each
  for (const placement::DeviceRow& d : f.placement().devices) {
    if (d.device.ends_with("GPU:0")) check(d.peak_bytes <= 2 << 20, "2 MiB");
  }
  check(f.placement().device_of("MatMul").ends_with("GPU:1"), "it has room");
}

void impossible_limits() {
  config::set_device_list("CPUx1,GPUx2");
  auto f =
      function([](const Tensor& x) { return matmul(x, x); },
               {.name = "tight",
                .contract = placement::Contract{.peak_memory = {{"", 1000}}},
                .placement = quick()});
  refuses<errors::ResourceExhausted>(
      [&] {
        f(ones({64, 64}));
      },
      "no placement keeps all limits");
  check(f.num_traces() == 1, "it was traced, and refused");
}

TEST(AutoPlace, LimitsThatCannotBeKeptAreNamed) {
  IN_A_FRESH_PROCESS(impossible_limits());
}

void throughput() {
  config::set_device_list("CPUx1,GPUx2");
  placement::Auto busy = quick();
  busy.objective = placement::Throughput;
  auto f =
      function([](const Tensor& x) { return chains(x); }, {.placement = busy});
  check(f(fill({1}, 3.f)).to_vector<float>() == reference(3), "the result");
  const placement::Report r = f.placement();
  check(r.plan.starts_with("Planned load of the busiest device"), r.plan);
  check(r.devices.size() >= 2, "work is shared");
}

TEST(AutoPlace, ThroughputIsAnObjectiveToo) {
  IN_A_FRESH_PROCESS(throughput());
}

void strategies_place_their_own() {
  config::set_device_list("CPUx1,GPUx2");
  config::set_placement_policy(quick());
  const distribute::MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
  const auto y = strategy.run(
      [](const Tensor& x) { return math::reduce_sum(x * x); }, ones({4}));
  check(debugging::diagnostic_counts().at("plan-under-strategy") == 1, "said");
  check(debugging::diagnostic_counts().count("planned") == 0, "not planned");
}

TEST(AutoPlace, StrategiesPlaceTheirOwnSteps) {
  IN_A_FRESH_PROCESS(strategies_place_their_own());
}

TEST(AutoPlace, MemoryLimitsAreKept) { IN_A_FRESH_PROCESS(limits_are_kept()); }

void keras_models() {
  need_cores(2);
  config::set_device_list("CPUx2");
  keras::Sequential model(
      {keras::Dense(32, {.activation = "relu"}), keras::Dense(4)});
  model.build(Shape({-1, 16}));
  model.compile({.optimizer = "adam",
                 .loss = keras::losses::MeanSquaredError(),
                 .placement = quick()});
  const Tensor x = ones({8, 16}), y = zeros({8, 4});
  const double first = model.train_on_batch(x, y).item<float>();
  double last = first;
  for (int k = 0; k < 20; ++k) last = model.train_on_batch(x, y).item<float>();
  check(last < first, "it learns");
  check(!model.placement().plan.empty(), "by a plan");
}

// 12 MiB of weights on GPUs of 8, updated under a condition: of accumulation,
// and of a loss scale.
void larger_models() {
  const config::PhysicalDevice gpu = [] {
    config::set_simulated_devices("GPUx1");
    return config::list_physical_devices("GPU")[0];
  }();
  config::set_logical_device_configuration(
      gpu, {{.memory_limit_mb = 8}, {.memory_limit_mb = 8}});
  using namespace keras::optimizers;  // NOLINT
  const auto train = [](const keras::Optimizer& optimizer, bool by_plan) {
    const auto on = device(by_plan ? "" : "/CPU:0");
    random::set_seed(3);
    keras::clear_session();
    std::vector<keras::Layer> layers = {keras::InputLayer({512})};
    for (int i = 0; i < 6; ++i) {
      layers.push_back(keras::Dense(512 << (i + 1) % 2, {.use_bias = false}));
    }
    keras::Sequential model(layers);
    keras::CompileOptions options{.optimizer = optimizer,
                                  .loss = keras::losses::MeanSquaredError()};
    if (by_plan) {
      placement::Auto policy = quick();
      policy.effort = placement::moves(2'000);
      options.placement = policy;
    }
    model.compile(options);
    std::vector<float> losses;
    for (int k = 0; k < 4; ++k) {
      losses.push_back(
          model.train_on_batch(ones({4, 512}), zeros({4, 512})).item<float>());
    }
    if (!by_plan) return losses;
    for (const placement::DeviceRow& d : model.placement().devices) {
      if (d.device.find("GPU") == std::string::npos) continue;
      check(d.peak_bytes <= 8 << 20, d.device + " holds too much");
    }
    return losses;
  };
  for (const bool scaled : {false, true}) {
    const auto make = [&] {
      const keras::Optimizer sums =
          SGD(0.001, {.gradient_accumulation_steps = scaled ? 0 : 2});
      return scaled ? keras::Optimizer(LossScaleOptimizer(sums)) : sums;
    };
    const auto want = train(make(), false);
    const auto got = train(make(), true);
    check(want.back() < want.front(), "it learns");
    for (size_t i = 0; i < want.size(); ++i) {
      check(std::abs(want[i] - got[i]) <= 1e-4f * want[i],
            "loss " + std::to_string(i) + " is " + std::to_string(got[i]) +
                ", on the host " + std::to_string(want[i]));
    }
  }
  check(debugging::diagnostic_counts().at("made-elsewhere") > 0, "said");
}
TEST(AutoPlace, AModelMayBeLargerThanADevice) {
  IN_A_FRESH_PROCESS(larger_models());
}

void sliced_models() {
  need_cores(2);
  config::set_device_list("CPUx2");
  keras::Sequential model({keras::Dense(32), keras::Dense(4)});
  model.build(Shape({-1, 16}));
  model.compile({.optimizer = "sgd",
                 .loss = keras::losses::MeanSquaredError(),
                 .slices = 2,
                 .placement = quick()});
  check(model.train_on_batch(ones({8, 16}), zeros({8, 4})).item<float>() > 0,
        "a loss");
}

TEST(AutoPlace, SlicedModelsTakeAPolicy) {
  IN_A_FRESH_PROCESS(sliced_models());
}

TEST(AutoPlace, KerasModelsCompileWithAPolicy) {
  IN_A_FRESH_PROCESS(keras_models());
}

}  // namespace
}  // namespace berth
