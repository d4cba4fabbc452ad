// Where every op of a backward pass runs, for the examples of article 004:
// eagerly by the placement log, traced by the placed graph. Devices are
// configured once per process, so each test runs in one of its own.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <set>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/gpu_testing.h"
#include "graph/graph.h"

namespace berth {
namespace {

using fresh_process::check;

std::string short_name(const std::string& device) {
  const size_t at = device.find("device:");
  return at == std::string::npos ? device : device.substr(at + 7);
}

// Ops by device: {"GPU:0": {"Mul", "Sum"}, "GPU:1": {"MatMul"}}.
using Places = std::map<std::string, std::set<std::string>>;

std::string text(const Places& places) {
  std::string s;
  for (const auto& [device, ops] : places) {
    s += device + ":";
    for (const std::string& op : ops) s += " " + op;
    s += "; ";
  }
  return s;
}

std::set<std::string> devices(const Places& places) {
  std::set<std::string> d;
  for (const auto& [device, ops] : places) d.insert(device);
  return d;
}

// The ops that `work` runs, by the placement log.
Places logged(const std::function<void()>& work) {
  Places places;
  auto before =
      debugging::set_diagnostic_handler([&](const debugging::Diagnostic& d) {
        if (d.id != "placement") return;
        // "Executing op MatMul in device GPU:0 (x.cc:7)"
        const std::string head = "Executing op ", middle = " in device ";
        const size_t at = d.text.find(middle);
        const size_t begin = at + middle.size();
        const size_t end = std::min(d.text.find(' ', begin), d.text.size());
        places[short_name(d.text.substr(begin, end - begin))].insert(
            d.text.substr(head.size(), at - head.size()));
      });
  debugging::set_log_device_placement(true);
  work();
  debugging::set_log_device_placement(false);
  debugging::set_diagnostic_handler(before);
  return places;
}

// The updates of variables and the gradients among the nodes of a placed
// graph. Every gradient node knows whose gradient it is.
struct Traced {
  Places gradients, updates;
  // Gradient nodes that are elsewhere than the op whose gradient they are.
  int strays = 0;
};

Traced traced(const std::string& placed) {
  const Graph g = parse_graph(placed);
  Traced t;
  for (const Node& n : g.nodes) {
    const std::string device = short_name(n.assigned.text());
    if (n.op->name().starts_with("ResourceApply")) {
      t.updates[device].insert(n.op->name());
    }
    if (n.follows < 0) continue;
    t.gradients[device].insert(n.op->name());
    t.strays += n.assigned != g[n.follows].assigned;
  }
  return t;
}

// --- Example 1: one layer, its gradient pinned or not ------------------------

Tensor inputs() { return constant({{1.f}, {2.f}, {3.f}}); }
Tensor labels() { return constant({{2.f}, {4.f}, {6.f}}); }

// The article's model, which computes one matrix product and nothing else; on
// `where` when that is not empty.
keras::Model simple_model(const std::string& where) {
  std::optional<DeviceGuard> on;
  if (!where.empty()) on.emplace(where, Site::here());
  return keras::Sequential(
      {keras::Dense(1, {.use_bias = false, .kernel_initializer = "ones"})});
}

enum class Pin { kNo, kOption, kScopeAfterTape, kScopeBeforeTape };

struct Example1 {
  keras::Model model;
  keras::Optimizer optimizer = keras::SGD(0.01);
  Pin pin;
  Places backward, update;  // of the last eager step

  Tensor step(const Tensor& x, const Tensor& y) {
    std::optional<DeviceGuard> before;
    if (pin == Pin::kScopeBeforeTape) before.emplace("/CPU:0", Site::here());
    GradientTape tape;
    const Tensor loss = keras::losses::MeanSquaredError()(y, model(x));
    const auto variables = model.trainable_variables();
    Tensors gradients;
    backward = logged([&] {
      if (pin == Pin::kScopeAfterTape) {
        const auto on = device("/GPU:0");
        gradients = tape.gradient(loss, variables);
      } else if (pin == Pin::kOption) {
        gradients = tape.gradient(loss, variables, {.device = "/GPU:0"});
      } else {
        gradients = tape.gradient(loss, variables);
      }
    });
    update = logged([&] { optimizer.apply_gradients(gradients, variables); });
    return loss;
  }
};

// The loss is computed on `loss_on`, the layer on `layer_on`.
void check_example_1(const std::string& model_on, Pin pin,
                     const std::string& layer_on, const std::string& loss_on) {
  const bool pinned = pin == Pin::kOption || pin == Pin::kScopeAfterTape;
  Example1 e{.model = simple_model(model_on), .pin = pin};
  e.step(inputs(), labels());
  e.step(inputs(), labels());  // what is made at the first call exists now
  const std::string eagerly = "eagerly " + text(e.backward);
  if (pinned) {
    check(devices(e.backward) == std::set<std::string>{"GPU:0"}, eagerly);
    check(e.backward["GPU:0"].contains("MatMul"), eagerly);
  } else {
    check(devices(e.backward) == std::set<std::string>{layer_on, loss_on},
          eagerly);
    check(e.backward[layer_on].contains("MatMul"), eagerly);
    if (layer_on != loss_on) {
      check(e.backward[layer_on] == std::set<std::string>{"MatMul"}, eagerly);
      check(!e.backward[loss_on].contains("MatMul"), eagerly);
    }
  }
  // The rate is where the first variable is; so is all of an update.
  check(devices(e.update) == std::set<std::string>{layer_on},
        "updates eagerly " + text(e.update));

  Example1 f{.model = simple_model(model_on), .pin = pin};
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return f.step(x, y); });
  step(inputs(), labels());
  Traced t = traced(step.text("place"));
  const std::string in_a_trace = "traced " + text(t.gradients);
  check(t.updates == Places{{layer_on, {"ResourceApplyGradientDescent"}}},
        "updates traced " + text(t.updates));
  if (pinned) {
    check(devices(t.gradients) == std::set<std::string>{"GPU:0"}, in_a_trace);
  } else {
    check(t.strays == 0, in_a_trace);
    check(t.gradients[layer_on].contains("MatMul"), in_a_trace);
    check(devices(t.gradients) == std::set<std::string>{layer_on, loss_on},
          in_a_trace);
  }
}

void example_1() {
  test::use_gpus(2);
  for (const Pin pin : {Pin::kNo, Pin::kOption, Pin::kScopeAfterTape}) {
    check_example_1("", pin, "GPU:0", "GPU:0");
    check_example_1("/GPU:1", pin, "GPU:1", "GPU:0");
  }
  // A scope that is open when the tape is made says where the loss is
  // computed, and pins nothing.
  check_example_1("/GPU:1", Pin::kScopeBeforeTape, "GPU:1", "CPU:0");
}

TEST(GradientPlaces, Example1FollowsTheForwardOpUnlessPinned) {
  IN_A_FRESH_PROCESS(example_1());
}

// --- Example 2: one copy of the model per GPU --------------------------------

struct Example2 {
  std::vector<keras::Model> models;
  std::vector<keras::Optimizer> optimizers = {keras::SGD(0.01),
                                              keras::SGD(0.01)};
  Places backward[2], update[2];

  Tensors step(const Tensor& x, const Tensor& y) {
    Tensors losses;
    Tensors grads[2];
    for (int i = 0; i < 2; ++i) {
      const Tensor xi = x[{slice(i, {}, 2)}], yi = y[{slice(i, {}, 2)}];
      const auto on = device("/GPU:" + std::to_string(i));
      GradientTape tape;
      losses.push_back(keras::losses::MeanSquaredError()(yi, models[i](xi)));
      backward[i] = logged([&] {
        grads[i] = tape.gradient(losses[i], models[i].trainable_variables());
      });
    }
    for (int i = 0; i < 2; ++i) {
      update[i] = logged([&] {
        optimizers[i].apply_gradients(grads[i],
                                      models[i].trainable_variables());
      });
    }
    return losses;
  }
};

enum class Made {
  kAtFirstCall,  // as printed: in the scope of the first call
  kOutside,      // built before: on GPU:0, and GPU:1 gets copies
  kInScopes,     // each on its GPU
};

void check_example_2(Made made) {
  auto models = [&] {
    const bool scopes = made == Made::kInScopes;
    std::vector<keras::Model> list{simple_model(scopes ? "/GPU:0" : ""),
                                   simple_model(scopes ? "/GPU:1" : "")};
    for (keras::Model& m : list) {
      if (made == Made::kOutside) m.build({3, 1});
    }
    return list;
  };
  const Tensor x = constant({{1.f}, {2.f}, {3.f}, {4.f}, {5.f}, {6.f}});
  const Tensor y = x * 2.0f;
  Example2 e{models()};
  e.step(x, y);
  e.step(x, y);
  for (int i = 0; i < 2; ++i) {
    const std::string here = "GPU:" + std::to_string(i);
    const std::string home = made == Made::kOutside ? "GPU:0" : here;
    check(devices(e.backward[i]) == std::set<std::string>{here},
          "eagerly " + text(e.backward[i]));
    check(e.backward[i][here].contains("MatMul"), text(e.backward[i]));
    check(devices(e.update[i]) == std::set<std::string>{home},
          "updates eagerly " + text(e.update[i]));
  }
  Example2 f{models()};
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return f.step(x, y); });
  step(x, y);
  Traced t = traced(step.text("place"));
  check(t.strays == 0, "traced " + text(t.gradients));
  check(devices(t.gradients) == std::set<std::string>{"GPU:0", "GPU:1"},
        "traced " + text(t.gradients));
  for (const char* gpu : {"GPU:0", "GPU:1"}) {
    check(t.gradients[gpu].contains("MatMul"), "traced " + text(t.gradients));
  }
  const std::set<std::string> homes =
      made == Made::kOutside ? std::set<std::string>{"GPU:0"}
                             : std::set<std::string>{"GPU:0", "GPU:1"};
  check(devices(t.updates) == homes, "updates traced " + text(t.updates));
}

void example_2() {
  test::use_gpus(2);
  check_example_2(Made::kAtFirstCall);
  check_example_2(Made::kOutside);
  check_example_2(Made::kInScopes);
}

TEST(GradientPlaces, Example2RunsEachBackwardPassOnItsGpu) {
  IN_A_FRESH_PROCESS(example_2());
}

// --- Example 3: an op that the GPU does not have -----------------------------

Tensor phase_loss(const Tensor& x, const Tensor& y, const Tensor& phase) {
  const auto on = device("/GPU:0");
  const Tensor angle = math::angle(math::complex(x, phase));
  return math::reduce_mean(math::square(y - angle));
}

void check_example_3(const std::string& angle_on) {
  const Tensor x = inputs(), y = labels();
  const Variable phase =
      with_device("/GPU:0", [] { return Variable(constant({{0.5f}})); });
  // The gradient of Angle alone.
  {
    const Tensor c = with_device("/GPU:0", [&] {
      return math::complex(x, zeros({3, 1}));
    });
    GradientTape tape;
    tape.watch(c);
    Tensor angle;
    {
      const auto on = device("/GPU:0");
      angle = math::angle(c);
    }
    const Places p = logged([&] { tape.gradient(angle, c); });
    check(devices(p) == std::set<std::string>{angle_on},
          "the gradient of Angle " + text(p));
  }
  auto step = function([&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor loss = phase_loss(x, y, phase.value());
    const Tensor g = tape.gradient(loss, phase);
    phase.assign_sub(g * 0.1f);
    return loss;
  });
  step(x, y);
  const Graph g = parse_graph(step.text("place"));
  int of_angle = 0, others = 0;
  for (const Node& n : g.nodes) {
    if (n.follows < 0) continue;
    const bool angle = g[n.follows].op->name() == "Angle";
    (angle ? of_angle : others) += 1;
    check(short_name(n.assigned.text()) == (angle ? angle_on : "GPU:0"),
          n.name + " is on " + n.assigned.text());
  }
  check(of_angle > 0 && others > 0, "both kinds were seen");
}

void example_3_with_the_kernel() {
  test::use_gpus(2);
  check_example_3("GPU:0");
}
void example_3_without_the_kernel() {
  setenv("BERTH_SIM_MISSING", "Angle", 1);
  test::use_gpus(2);
  config::set_soft_device_placement(config::SoftPlacement::kSilent);
  check_example_3("CPU:0");
}

TEST(GradientPlaces, Example3RunsTheGradientWhereTheOpRuns) {
  IN_A_FRESH_PROCESS(example_3_with_the_kernel());
}
TEST(GradientPlaces, Example3FallsBackWithItsGradient) {
  SKIP_ON_GPUS_OF_MACHINE("GPUs of the machine have a kernel for Angle");
  IN_A_FRESH_PROCESS(example_3_without_the_kernel());
}

// --- Sums of contributions ---------------------------------------------------

// h is read on both devices; what comes back is added where h is.
void contributions() {
  test::use_gpus(2);
  for (const char* home : {"/GPU:0", "/GPU:1"}) {
    auto body = [&](const Tensor& x, Places* places) {
      GradientTape tape;
      tape.watch(x);
      const Tensor h = with_device(home, [&] { return math::tanh(x); });
      Tensor ends[2];
      for (int i = 0; i < 2; ++i) {
        const auto on = device("/GPU:" + std::to_string(i));
        ends[i] = math::square(math::sin(h));
      }
      const Tensor loss =
          with_device("/CPU:0", [&] { return ends[0] + ends[1]; });
      Tensor g;
      *places = logged([&] { g = tape.gradient(loss, x); });
      return g;
    };
    Places p;
    body(constant(0.5f), &p);
    int adds = 0;
    for (const auto& [device, ops] : p) {
      if (!ops.contains("AddV2") && !ops.contains("AddN")) continue;
      check(device == std::string(home).substr(1), "added on " + text(p));
      ++adds;
    }
    check(adds == 1, "the sum was seen: " + text(p));
    auto step = function([&](const Tensor& x) { return body(x, &p); });
    step(constant(0.5f));
    const Graph g = parse_graph(step.text("place"));
    adds = 0;
    for (const Node& n : g.nodes) {
      const std::string& op = n.op->name();
      if (n.follows < 0 || (op != "AddV2" && op != "AddN")) continue;
      check(n.assigned.text().ends_with(home + 1),
            "added on " + n.assigned.text());
      ++adds;
    }
    check(adds == 1, "the sum was seen in the trace");
  }
}

TEST(GradientPlaces, ContributionsAreAddedWhereTheValueLived) {
  IN_A_FRESH_PROCESS(contributions());
}

}  // namespace
}  // namespace berth
