#include "planner/plan_file.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "planner/json_field.h"
#include "planner/models.h"
#include "planner/plan_view.h"
#include "simulate/pipeline_steps.h"

namespace berth {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kVersion = 1;

// In one line. Names may contain any bytes.
std::string line_of(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// JSON has no infinity.
OrderedJson number(double x) {
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

template <class Items, class Fn>
OrderedJson array_of(const Items& items, const Fn& json_of) {
  OrderedJson all = OrderedJson::array();
  for (const auto& item : items) all.push_back(json_of(item));
  return all;
}

const std::string& device_name(const PlanProblem& p, int32_t d) {
  return p.costs.devices[d].name;
}

OrderedJson devices_json(const PlanProblem& p, const PlanAnswer& a) {
  std::vector<OrderedJson> order(p.costs.devices.size(), OrderedJson::array());
  std::vector<int32_t> ops(p.costs.devices.size(), 0);
  for (const int32_t op : a.plan.sequence) {
    order[a.plan.device[op]].push_back(p.names[op]);
  }
  for (const int32_t d : a.plan.device) ++ops[d];
  OrderedJson all = OrderedJson::array();
  for (size_t d = 0; d < p.costs.devices.size(); ++d) {
    const DeviceCost& device = p.costs.devices[d];
    OrderedJson one = {{"name", device.name},
                       {"class", p.costs.class_of(d).name},
                       {"memory_limit_bytes", device.memory_limit}};
    if (d < a.evaluation.devices.size()) {
      const DeviceUse& use = a.evaluation.devices[d];
      one.update({{"ops", ops[d]},
                  {"busy", use.busy},
                  {"copy_busy", use.copy_busy},
                  {"peak_bytes", use.bytes},
                  {"order", std::move(order[d])}});
      if (p.model == PlanModel::kPipeline) {
        one["weight_bytes"] = use.weights;
        one["gradient_bytes"] = use.gradients;
      }
    }
    all.push_back(std::move(one));
  }
  return all;
}

OrderedJson ops_json(const PlanProblem& p, const PlanAnswer& a) {
  const Simulation& s = a.evaluation.simulation;
  OrderedJson all = OrderedJson::array();
  for (size_t i = 0; i < a.plan.device.size(); ++i) {
    OrderedJson op = {{"name", p.names[i]},
                      {"device", device_name(p, a.plan.device[i])}};
    if (!p.ids.empty()) op["id"] = p.ids[i];
    if (p.model == PlanModel::kStep && i < s.start_us.size()) {
      op["start"] = s.start_us[i];
      op["end"] = s.end_us[i];
    }
    if (i < a.plan.stage.size() && p.model == PlanModel::kPipeline) {
      op["stage"] = a.plan.stage[i].stage;
      if (a.plan.stage[i].backward) op["backward"] = true;
    }
    all.push_back(std::move(op));
  }
  return all;
}

OrderedJson transfers_json(const PlanProblem& p, const PlanAnswer& a) {
  return array_of(transfers_of(p, a.plan, a.evaluation.simulation),
                  [&](const auto& t) {
                    OrderedJson one = {{"value", value_name(p, t.value)},
                                       {"from", device_name(p, t.from)},
                                       {"to", device_name(p, t.to)},
                                       {"bytes", t.bytes},
                                       {"time", t.time}};
                    if (p.model == PlanModel::kStep) {
                      one["start"] = t.start;
                      one["end"] = t.end;
                    }
                    return one;
                  });
}

OrderedJson pipeline_json(const PlanProblem& p, const PlanAnswer& a) {
  const auto stage = [&](const StageUse& s) -> OrderedJson {
    return {{"device", s.device < 0 ? "" : device_name(p, s.device)},
            {"forward", s.forward},
            {"backward", s.backward},
            {"in_flight", s.in_flight}};
  };
  return {{"micro_batches", p.pipeline.micro_batches},
          {"schedule", order_name(a.plan.order)},
          {"bubble", bubble_of(a)},
          {"stages", array_of(a.evaluation.stages, stage)}};
}

OrderedJson witness_json(const Witness& w) {
  OrderedJson arrays = OrderedJson::object();
  for (const auto& [name, numbers] : w.arrays) {
    arrays[name] = array_of(numbers, number);
  }
  return {
      {"kind", w.kind}, {"target", w.target}, {"arrays", std::move(arrays)}};
}

OrderedJson conflict_json(const PlanProblem& p, const Infeasible& c) {
  const auto op = [&](int32_t i) { return p.names[i]; };
  const auto device = [&](int32_t d) { return device_name(p, d); };
  return {{"text", c.text},
          {"ops", array_of(c.ops, op)},
          {"devices", array_of(c.devices, device)}};
}

OrderedJson candidates_json(const PlanAnswer& a) {
  return array_of(a.candidates, [](const PricedCandidate& c) -> OrderedJson {
    return {{"name", c.name},
            {"value", number(c.value)},
            {"violations", c.violations}};
  });
}

// null: no search, or its start did not keep all limits.
OrderedJson start_json(const PlanAnswer& a) {
  if (a.start.name.empty() || !std::isfinite(a.start.value)) return nullptr;
  return {{"name", a.start.name},
          {"value", a.start.value},
          {"improved", a.improved()}};
}

template <class Names>
std::unordered_map<std::string, int32_t> numbers_of(const Names& names) {
  std::unordered_map<std::string, int32_t> number;
  int32_t next = 0;
  for (const auto& name : names) number.emplace(name, next++);
  return number;
}

// The name as a plan file prints it.
std::string printed(const std::string& name) {
  return OrderedJson::parse(line_of(name)).get<std::string>();
}

// The devices of ops, and their stages if `stage` is given.
std::vector<int32_t> read_devices(const PlanProblem& p, const Field& all,
                                  std::vector<OpStage>* stage) {
  std::vector<std::string> device_names, op_names;
  for (const DeviceCost& d : p.costs.devices) device_names.push_back(d.name);
  for (const std::string& name : p.names) op_names.push_back(printed(name));
  const auto device = numbers_of(device_names), op = numbers_of(op_names);
  std::vector<int32_t> on(p.names.size(), -1);
  if (stage != nullptr) stage->assign(on.size(), {});
  for (const Field& f : all.items("ops")) {
    const Field name = f["name"], where = f["device"];
    const auto i = op.find(name.text());
    if (i == op.end()) name.fail(fmt::format("an op of \"{}\"", p.name));
    const auto d = device.find(where.text());
    if (d == device.end()) {
      where.fail(fmt::format("one of {} devices, the first \"{}\"",
                             device_names.size(), device_names[0]));
    }
    int32_t& at = on[i->second];
    if (at >= 0) name.fail("an op that stands there once");
    at = d->second;
    const auto s = f.find("stage");
    if (stage == nullptr || !s) continue;
    (*stage)[i->second] = {static_cast<int32_t>(s->integer(0, p.num_ops())),
                           f.find("backward").has_value()};
  }
  for (size_t i = 0; i < on.size(); ++i) {
    if (on[i] >= 0) continue;
    all["ops"].fail_with(fmt::format("\"{}\" is missing; expected all {} ops",
                                     p.names[i], on.size()));
  }
  return on;
}

double number_or(const Field& of, const char* name, double otherwise) {
  const auto f = of.find(name);
  return f ? f->number() : otherwise;
}

Witness read_witness(const Field& f) {
  Witness w;
  w.kind = f["kind"].text();
  w.target = f["target"].number();
  f["arrays"].each([&](const std::string& name, const Field& numbers) {
    w.arrays.emplace_back(name, numbers.numbers());
  });
  return w;
}

// The orders of devices repeat the sequence.
void check_orders(const PlanProblem& p, const PlacePlan& plan,
                  const Field& devices) {
  std::vector<size_t> next(devices.size(), 0);
  for (const int32_t op : plan.sequence) {
    const size_t d = plan.device[op];
    if (d >= devices.size()) return;
    const auto order = devices[d].find("order");
    if (!order) continue;
    const Field item = (*order)[next[d]++];
    const std::string name = printed(p.names[op]);
    if (item.text() != name) {
      item.fail(fmt::format("\"{}\", which is next in \"sequence\"", name));
    }
  }
  for (size_t d = 0; d < next.size(); ++d) {
    const auto order = devices[d].find("order");
    if (order && order->size() != next[d]) {
      order->fail(fmt::format("{} ops, those of \"sequence\"", next[d]));
    }
  }
}

std::vector<double> read_peaks(const PlanProblem& p, const Field& devices) {
  std::vector<double> peaks;
  for (const Field& f : devices.items()) {
    const Field name = f["name"];
    const size_t d = peaks.size();
    if (d >= p.costs.devices.size() || name.text() != p.costs.devices[d].name) {
      name.fail(fmt::format("the devices of \"{}\", in order", p.name));
    }
    peaks.push_back(number_or(f, "peak_bytes", 0));
  }
  return peaks;
}

}  // namespace

const char* status_name(PlanStatus status) {
  constexpr const char* kNames[] = {"planned", "infeasible", "nothing found"};
  return kNames[static_cast<size_t>(status)];
}

std::string lines_of(const OrderedJson& document) {
  std::string out = "{";
  const char* comma = "";
  for (const auto& [key, value] : document.items()) {
    out += fmt::format("{}\n \"{}\": ", comma, key);
    comma = ",";
    if (!value.is_array() || value.empty() || !value[0].is_object()) {
      out += line_of(value);
      continue;
    }
    const char* separator = "[\n  ";
    for (const OrderedJson& item : value) {
      out += separator + line_of(item);
      separator = ",\n  ";
    }
    out += "]";
  }
  return out + "\n}\n";
}

OrderedJson plan_json(const PlanProblem& p, const PlanAnswer& a,
                      const PlannerOptions& o) {
  OrderedJson all = {
      {"berth_plan", kVersion},           {"name", p.name},
      {"objective", model_name(p.model)}, {"rules", rules_of(p).name},
      {"time_unit", p.time_unit},         {"status", status_name(a.status)},
      {"certificate", certificate(p, a)}};
  const bool planned = a.status == PlanStatus::kPlanned;
  const bool bounded = a.bound.value > 0;
  all["value"] = planned ? OrderedJson(a.value) : OrderedJson();
  all["bound"] = bounded ? OrderedJson(a.bound.value) : OrderedJson();
  all["gap"] = planned && bounded ? OrderedJson(a.gap()) : OrderedJson();
  all["proof"] = a.bound.how;
  all["source"] = a.source;
  if (planned) all["start"] = start_json(a);
  all["seconds"] = a.seconds;
  all["moves"] = a.moves;
  all["seed"] = o.seed;
  all["candidates"] = candidates_json(a);
  all["devices"] = devices_json(p, a);
  if (p.model == PlanModel::kLoad && !a.evaluation.shared_busy.empty()) {
    all["shared_links"] = a.evaluation.shared_busy;
    if (!p.costs.shared_names.empty()) {
      all["shared_names"] = p.costs.shared_names;
    }
  }
  if (planned && p.model == PlanModel::kPipeline) {
    all["pipeline"] = pipeline_json(p, a);
  }
  if (planned) {
    all["ops"] = ops_json(p, a);
    all["sequence"] = a.plan.sequence;
    all["transfers"] = transfers_json(p, a);
  }
  if (a.conflict.any()) all["conflict"] = conflict_json(p, a.conflict);
  if (!a.bound.witness.kind.empty()) {
    all["witness"] = witness_json(a.bound.witness);
  }
  return all;
}

PlanFile read_plan(const PlanProblem& p, const std::string& text,
                   const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  const Field all(document, file);
  all["berth_plan"].integer(1, kVersion);
  PlanFile plan;
  const Field rules = all["rules"];
  plan.model = p.model;
  if (rules.text() != rules_of(p).name) {
    rules.fail(
        fmt::format("\"{}\", the rules of this problem; is the "
                    "objective the same?",
                    rules_of(p).name));
  }
  plan.status = all["status"].text();
  if (plan.status != status_name(PlanStatus::kPlanned) &&
      plan.status != status_name(PlanStatus::kInfeasible) &&
      plan.status != status_name(PlanStatus::kNothingFound)) {
    all["status"].fail("\"planned\", \"infeasible\" or \"nothing found\"");
  }
  plan.value = number_or(all, "value", 0);
  plan.bound = number_or(all, "bound", 0);
  plan.gap = number_or(all, "gap", -1);
  if (all.find("ops")) {
    const bool staged = p.model == PlanModel::kPipeline;
    plan.plan.device =
        read_devices(p, all, staged ? &plan.plan.stage : nullptr);
    if (staged) {
      const Field pipeline = all["pipeline"], schedule = pipeline["schedule"];
      const auto stash = pipeline.find("stash_weights");  // of old files
      if (stash && stash->flag()) stash->fail("false: steps do not overlap");
      plan.plan.order =
          schedule.parsed([&] { return order_of_name(schedule.text()); });
    }
    for (const Field& op : all["sequence"].items()) {
      plan.plan.sequence.push_back(op.integer(0, p.num_ops() - 1));
    }
  }
  if (const auto devices = all.find("devices")) {
    plan.peak_bytes = read_peaks(p, *devices);
    if (!plan.plan.device.empty()) check_orders(p, plan.plan, *devices);
  }
  if (const auto w = all.find("witness")) plan.witness = read_witness(*w);
  return plan;
}

}  // namespace berth
