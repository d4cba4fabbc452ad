#include "cli/planner/problem_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "planner/cluster.h"
#include "planner/json_field.h"

namespace berth {

namespace {

constexpr double kMostBytes = 0x1p62;

// A number of 0 to `most`; `otherwise` where the field is missing.
double number_of(const Field& of, const char* name, double otherwise,
                 double most) {
  const auto f = of.find(name);
  if (!f) return otherwise;
  const double x = f->number();
  if (x < 0 || x > most) f->fail(fmt::format("0 to {:g}", most));
  return x;
}

void read_devices(const Field& root, PlanProblem& p) {
  CostTable& costs = p.costs;
  for (const Field& f : root["classes"].items()) {
    f.only({"name", "type"});
    costs.classes.push_back({.name = f["name"].text(),
                             .type = f["type"].text(),
                             .origin = CostOrigin::kDeclared});
  }
  const Field devices = root["devices"];
  if (devices.size() > kMaxPlaceDevices) {
    devices.fail(fmt::format("{} devices at most", kMaxPlaceDevices));
  }
  for (const Field& f : devices.items()) {
    const Field of_class = f["class"];
    f.only({"name", "class", "memory_bytes", "copies", "free_of_touch"});
    const auto c =
        std::ranges::find(costs.classes, of_class.text(), &DeviceClass::name);
    if (c == costs.classes.end()) of_class.fail("the name of a class");
    const auto class_number = static_cast<int32_t>(c - costs.classes.begin());
    const double memory = number_of(f, "memory_bytes", 0, kMostBytes);
    costs.devices.push_back({f["name"].text(), class_number,
                             static_cast<int64_t>(memory),
                             read_copy_rule(f["copies"]), -1});
    const auto free = f.find("free_of_touch");
    p.free_of_touch.push_back(free && free->flag());
  }
  const double rate = root["bytes_per_time"].number();
  if (!(rate > 0)) root["bytes_per_time"].fail("more than 0");
  costs.links.assign(devices.size() * devices.size(),
                     {0, rate, -1, CostOrigin::kDeclared});
}

// An op of one output; its number is that of its value.
void read_op(const Field& f, int32_t number, int32_t num_ops, PlanProblem& p) {
  f.only({"name", "id", "times", "reads", "bytes", "group", "devices", "held",
          "touch", "backward"});
  const Field times = f["times"];
  p.names.push_back(f["name"].text());
  if (const auto id = f.find("id")) {
    p.ids.push_back(id->integer(INT64_MIN, INT64_MAX));
  }
  if (times.size() != p.costs.classes.size()) {
    times.fail(fmt::format("{} times, one per class", p.costs.classes.size()));
  }
  for (const double us : times.numbers()) {
    p.costs.times.push_back({us, 0, CostOrigin::kDeclared});
  }
  std::vector<int32_t> inputs;
  for (const Field& read : f["reads"].items()) {
    inputs.push_back(static_cast<int32_t>(read.integer(0, num_ops - 1)));
  }
  sort_unique(inputs);
  SimulatedGraph& g = p.graph;
  g.reads.add(inputs);
  g.controls.add({});
  g.values.add(std::span(&number, 1));
  g.producer.push_back(number);
  const int64_t bytes = f["bytes"].integer(0, INT64_MAX);
  p.costs.bytes.add(std::span(&bytes, 1));
  p.group.push_back(static_cast<int32_t>(f["group"].integer(0, num_ops - 1)));
  p.num_groups = std::max(p.num_groups, p.group.back() + 1);
  p.allowed.push_back(~DeviceSet{0});
  if (f.find("devices")) p.allowed.back() = {};
  for (const Field& device : f.items("devices")) {
    const int64_t d = device.integer(0, p.num_devices() - 1);
    p.allowed.back() |= device_bit(static_cast<int32_t>(d));
  }
  p.resident_bytes.push_back(number_of(f, "held", 0, 4 * kMostBytes));
  if (f.find("touch")) p.touch_us.push_back(number_of(f, "touch", 0, 1e30));
  const auto backward = f.find("backward");
  p.backward.push_back(backward && backward->flag());
}

}  // namespace

PlanProblem read_problem(const std::string& text, const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  const Field root(document, file);
  if (!root.find("berth_problem")) {
    root.fail_with(
        "has no \"berth_problem\"; files of dnn-partitioning and Doppler are "
        "converted by tools/plan_problem FILE > PROBLEM");
  }
  root["berth_problem"].integer(1, 1);
  root.only({"berth_problem", "name", "objective", "classes", "devices",
             "bytes_per_time", "bytes_scale", "ops"});
  PlanProblem p;
  p.name = root["name"].text();
  p.time_unit = "";
  const Field objective = root["objective"], ops = root["ops"];
  if (objective.text() == model_name(PlanModel::kLoad)) {
    p.model = PlanModel::kLoad;
  } else if (objective.text() != model_name(PlanModel::kStep)) {
    objective.fail("\"latency\" or \"throughput\"");
  }
  p.bytes_scale = number_of(root, "bytes_scale", 1, 0x1p1000);
  read_devices(root, p);
  const size_t n = ops.size();
  if (n == 0 || n > INT32_MAX) ops.fail("at least one op");
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < n; ++i) {
    read_op(ops[i], static_cast<int32_t>(i), static_cast<int32_t>(n), p);
    if (!names.insert(p.names.back()).second) {
      ops[i]["name"].fail("a name that no op before has");
    }
  }
  p.graph.kind.assign(n, SimulatedGraph::Kind::kOp);
  p.graph.finish();
  p.costs.workspace.assign(n * p.costs.classes.size(), 0);
  check_problem(p);
  return p;
}

}  // namespace berth
