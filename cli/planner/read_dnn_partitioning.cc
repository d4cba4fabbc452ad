// The JSON of dnn-partitioning, read as its authors' programs do: "size" and
// "colorClass" are optional, and so is "isBackwardNode" for latency. Other
// fields are ignored, except "containedSubnodes", which those programs refuse.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "cli/planner/file_graph.h"
#include "cli/planner/formats.h"
#include "planner/json_field.h"

namespace berth {

namespace {

using Json = nlohmann::json;

constexpr double kNeverRuns = 1e30;  // the authors' infinity
constexpr double kMostBytes = 1e18;
// A smaller limit counts as zero, so that no unit becomes infinite.
constexpr double kLeastBytes = 1e-200;
// Latency: bytes of the value that costs most, and the least limit beside them.
constexpr double kMostValueBytes = 0x1p20, kLeastStepLimit = 0x1p40;
constexpr double kRoundingOfSums = 1e-12;
constexpr double kSameCost = 1e-6;  // tolerance for costs of one op's edges

double number(const Field& field, double most) {
  const double x = field.number();
  if (x < 0 || x > most) field.fail(fmt::format("0 to {:g}", most));
  return x + 0.0;  // avoids -0
}

// Takes "5.0" too.
int64_t integer(const Field& field) {
  const Json& v = field.json();
  const double x = v.is_number_float() ? v.get<double>() : 0.5;
  if (std::abs(x) <= 0x1p53 && x == std::floor(x)) {
    return static_cast<int64_t>(x);
  }
  return field.integer(INT64_MIN, INT64_MAX);
}

int count(const Field& field) {
  const int64_t n = integer(field);
  if (n < 0 || n > 64) field.fail("0 to 64 devices");
  return static_cast<int>(n);
}

bool flag(const Field& field) {
  const Json& v = field.json();
  const bool on = v == true || v == 1;
  if (!on && v != false && v != 0) field.fail("true, false, 1 or 0");
  return on;
}

struct File {
  std::vector<std::string> given_names;
  std::unordered_map<int64_t, int32_t> number_of;  // of an id
  std::vector<double> size;
  double limit = 0;  // of an accelerator
};

// Ops of one colour class form one group; other ops are alone.
class ColourClasses {
 public:
  int32_t of(const Field& node) {
    const auto colour = node.find("colorClass");
    if (!colour) return next_++;
    const auto [it, added] = group_.emplace(integer(*colour), next_);
    next_ += added;
    return it->second;
  }
  int32_t size() const { return next_; }

 private:
  std::unordered_map<int64_t, int32_t> group_;
  int32_t next_ = 0;
};

enum Class : int32_t { kCpu, kAccelerator };

OpTime declared(double us) {
  if (us >= kNeverRuns) return {};
  return {us, 0, CostOrigin::kDeclared};
}

// Reads an op's part of a plan problem, except the graph.
void read_node(const Field& node, Objective objective, PlanProblem& p,
               File& f) {
  const Field id = node["id"];
  p.ids.push_back(integer(id));
  const int32_t number_of_op = f.number_of.size();
  if (!f.number_of.emplace(p.ids.back(), number_of_op).second) {
    id.fail("an id that no node before has");
  }
  if (const auto inner = node.find("containedSubnodes")) {
    inner->fail("a node without it");
  }
  const auto name = node.find("name");
  f.given_names.push_back(
      name && name->json().is_string() ? name->json().get<std::string>() : "");
  const bool supported = flag(node["supportedOnFpga"]);
  const double on_accelerator = number(node["fpgaLatency"], 1e300);
  p.costs.times.push_back(declared(number(node["cpuLatency"], 1e300)));
  p.costs.times.push_back(supported ? declared(on_accelerator) : OpTime());
  const auto size = node.find("size");
  f.size.push_back(size ? number(*size, kMostBytes) : 0);
  const bool latency = objective == Objective::kLatency;
  const bool backward =
      (!latency || node.find("isBackwardNode")) && flag(node["isBackwardNode"]);
  if (latency && backward) {
    node["isBackwardNode"].fail(
        "0: the latency of this format is that of inference; training "
        "has throughput (--objective throughput)");
  }
  p.backward.push_back(backward);
}

// Per op, its inputs, and the cost and bytes of its value.
struct Edges {
  std::vector<std::vector<int32_t>> inputs;
  std::vector<double> cost;
  std::vector<int64_t> bytes;
};

Edges read_edges(const Field& edges, const File& f) {
  const size_t n = f.number_of.size();
  Edges e{std::vector<std::vector<int32_t>>(n), std::vector<double>(n, -1),
          std::vector<int64_t>(n, 0)};
  for (size_t k = 0; k < edges.size(); ++k) {
    const Field edge = edges[k];
    const auto end = [&](const char* key) {
      const auto it = f.number_of.find(integer(edge[key]));
      if (it == f.number_of.end()) edge[key].fail("the id of a node");
      return it->second;
    };
    const int32_t from = end("sourceId"), to = end("destId");
    if (from == to) edge["destId"].fail("another node than sourceId");
    const double cost = number(edge["cost"], kNeverRuns);
    if (e.cost[from] >= 0 && std::abs(e.cost[from] - cost) > kSameCost) {
      edge["cost"].fail(fmt::format("{}, as on the edges before from node {}",
                                    e.cost[from], integer(edge["sourceId"])));
    }
    if (e.cost[from] < 0) e.cost[from] = cost;
    // Only for reports; the authors' programs do not read it.
    const auto size = edge.find("size");
    const double bytes =
        size && size->json().is_number() ? size->json().get<double>() : 0;
    if (bytes > 0 && bytes <= kMostBytes) {
      e.bytes[from] = std::max(e.bytes[from], static_cast<int64_t>(bytes));
    }
    e.inputs[to].push_back(from);
  }
  for (double& c : e.cost) c = std::max(c, 0.0);
  return e;
}

// Uses names where they distinguish all ops; otherwise ops with a unique name
// keep it, and the others use their ids.
void set_names(PlanProblem& p, const File& f) {
  std::unordered_map<std::string, int> times;
  for (const std::string& n : f.given_names) ++times[n];
  std::unordered_set<std::string> taken;
  for (size_t i = 0; i < p.ids.size(); ++i) {
    const std::string& n = f.given_names[i];
    p.names.push_back(!n.empty() && times[n] == 1 ? n
                                                  : std::to_string(p.ids[i]));
    taken.insert(p.names.back());
  }
  if (taken.size() == p.names.size()) return;
  for (size_t i = 0; i < p.ids.size(); ++i) {
    p.names[i] = std::to_string(p.ids[i]);
  }
}

// Latency: bytes and links whose times are the costs.
void set_transfers(PlanProblem& p, Edges& e) {
  const double most = *std::ranges::max_element(e.cost);
  const double rate = most > 0 ? kMostValueBytes / most : 1;
  for (size_t i = 0; i < e.cost.size(); ++i) {
    e.bytes[i] = std::llround(e.cost[i] * rate);
  }
  for (LinkCost& link : p.costs.links) link.bytes_per_us = rate;
}

// Limits are whole bytes. A fractional limit is multiplied, together with all
// sizes, by a power of two, which is exact; for latency until values' bytes,
// which are part of costs there, hardly count. A limit that cannot bind is left
// out, and a limit of zero becomes a mask.
void set_limit(PlanProblem& p, const File& f, const Field& nodes) {
  double total = 0, unit = 1;
  for (const double s : f.size) total += s;
  if (total > kMostBytes) {
    nodes.fail_with(
        fmt::format("found sizes of {:g} in all, expected {:g} at "
                    "most",
                    total, kMostBytes));
  }
  const bool none = f.limit < kLeastBytes;
  const double limit = none || f.limit > kMostBytes ? 0 : f.limit;
  const double least = p.model == PlanModel::kStep ? kLeastStepLimit : 0;
  while (limit > 0 &&
         (limit * unit != std::floor(limit * unit) || limit * unit < least)) {
    unit *= 2;
  }
  p.bytes_scale = unit;
  // Sums of whole numbers are exact. For others, the order of addition must not
  // decide whether something fits exactly.
  const bool exact = total * unit <= 0x1p53 &&
                     std::all_of(f.size.begin(), f.size.end(), [&](double s) {
                       return s * unit == std::floor(s * unit);
                     });
  const double as = exact ? unit : unit * (1 - kRoundingOfSums);
  for (size_t i = 0; i < f.size.size(); ++i) {
    p.resident_bytes[i] = std::min(f.size[i] * as, 4 * kMostBytes);
    if (!none || f.size[i] == 0) continue;
    for (int32_t d = 0; d < p.num_devices(); ++d) {
      if (p.costs.devices[d].device_class == kAccelerator) {
        p.allowed[i] &= ~device_bit(d);
      }
    }
  }
  for (DeviceCost& d : p.costs.devices) {
    if (d.device_class == kAccelerator) {
      d.memory_limit = static_cast<int64_t>(limit * unit);
    }
  }
}

void set_devices(PlanProblem& p, const Field& root) {
  const int accelerators = count(root["maxFPGAs"]);
  const int cpus = count(root["maxCPUs"]);
  const auto add = [&](std::string name, Class of, CopyRule copies) {
    p.costs.devices.push_back({std::move(name), of, 0, copies, -1});
  };
  for (int i = 0; i < accelerators; ++i) {
    add(fmt::format("ACC:{}", i), kAccelerator, CopyRule::kBoth);
  }
  for (int i = 0; i < cpus; ++i) {
    add(fmt::format("CPU:{}", i), kCpu, CopyRule::kReceiving);
  }
  const size_t devices = p.costs.devices.size();
  if (devices == 0 || devices > 64) {
    root["maxFPGAs"].fail(
        fmt::format("1 to 64 devices with the CPUs, not {}", devices));
  }
  for (const DeviceCost& d : p.costs.devices) {
    p.free_of_touch.push_back(d.device_class == kCpu);
  }
  p.costs.links.assign(devices * devices, {0, 1, -1, CostOrigin::kDeclared});
}

}  // namespace

PlanProblem read_dnn_partitioning(const std::string& text,
                                  const std::string& name,
                                  Objective objective) {
  const Json json = parse_json(text, name);
  const Field root(json, name);
  PlanProblem p;
  p.name = name;
  p.time_unit = "";
  const bool latency = objective == Objective::kLatency;
  p.model = latency ? PlanModel::kStep : PlanModel::kLoad;
  p.costs.classes = {
      {.name = "CPU", .type = "CPU", .origin = CostOrigin::kDeclared},
      {.name = "accelerator", .type = "ACC", .origin = CostOrigin::kDeclared}};
  File f;
  f.limit = number(root["maxSizePerFPGA"], 1e300);
  set_devices(p, root);
  const Field nodes = root["nodes"];
  if (nodes.size() == 0) nodes.fail("at least one node");
  ColourClasses colours;
  std::vector<int32_t> group;
  for (size_t i = 0; i < nodes.size(); ++i) {
    read_node(nodes[i], objective, p, f);
    group.push_back(colours.of(nodes[i]));
  }
  set_names(p, f);
  Edges e = read_edges(root["edges"], f);
  if (latency) {
    set_transfers(p, e);
  } else {
    p.touch_us = std::move(e.cost);
  }
  const std::vector<uint8_t> backward = std::move(p.backward);
  set_graph(p, std::move(e.inputs), e.bytes);
  p.backward = backward;
  p.group = std::move(group);
  p.num_groups = colours.size();
  set_limit(p, f, nodes);
  check_problem(p);
  return p;
}

}  // namespace berth
