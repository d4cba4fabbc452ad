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
#include "cli/planner/pieces.h"
#include "place/planner/json_field.h"

namespace berth {

namespace {

using Json = nlohmann::json;

constexpr double kNeverRuns = 1e30;  // the authors' infinity
constexpr double kMostBytes = 1e18;
// A smaller limit counts as zero, so that no unit becomes infinite.
constexpr double kLeastBytes = 1e-200;
constexpr double kRoundingOfSums = 1e-12;
constexpr double kSameCost = 1e-6;  // tolerance for costs of one op's edges

// Fields of one JSON object at a path of the file.
class Fields {
 public:
  Fields(const std::string& name, std::string path, const Json& at)
      : name_(name), path_(std::move(path)), at_(at) {
    if (!at.is_object()) {
      bad_file(name, path_.empty() ? "the file" : path_,
               fmt::format("is {}; expected an object", show_json(at)));
    }
  }

  const Json* find(const char* key) const {
    const auto it = at_.find(key);
    return it == at_.end() ? nullptr : &*it;
  }
  const Json& need(const char* key, const char* expected) const {
    if (const Json* v = find(key)) return *v;
    bad_file(name_, where(key),
             fmt::format("is missing; expected {}", expected));
  }
  double number(const char* key, double most) const {
    const Json& v = need(key, "a number, 0 or more");
    const double x = v.is_number() ? v.get<double>() : -1;
    if (!(x >= 0) || !(x <= most)) {
      bad(key, fmt::format("a number from 0 to {:g}", most));
    }
    return x + 0.0;  // avoids -0
  }
  double number_or(const char* key, double most, double otherwise) const {
    return find(key) ? number(key, most) : otherwise;
  }
  int64_t integer(const char* key) const {
    const Json& v = need(key, "an integer");
    if (v.is_number_unsigned() && v.get<uint64_t>() <= INT64_MAX) {
      return static_cast<int64_t>(v.get<uint64_t>());
    }
    if (v.is_number_integer() && !v.is_number_unsigned()) {
      return v.get<int64_t>();
    }
    if (v.is_number_float()) {
      const double x = v.get<double>();
      if (std::abs(x) <= 0x1p53 && x == std::floor(x)) {
        return static_cast<int64_t>(x);
      }
    }
    bad(key, "an integer of 64 bits");
  }
  int count(const char* key) const {
    const int64_t n = integer(key);
    if (n < 0 || n > 64) bad(key, "0 to 64 devices");
    return static_cast<int>(n);
  }
  bool flag(const char* key) const {
    const Json& v = need(key, "true, false, 1 or 0");
    if (v.is_boolean()) return v.get<bool>();
    if (!v.is_number() || (v != 0 && v != 1)) bad(key, "true, false, 1 or 0");
    return v == 1;
  }
  const Json& array(const char* key) const {
    const Json& v = need(key, "an array");
    if (!v.is_array()) bad(key, "an array");
    return v;
  }

  std::string where(const char* key) const {
    return path_.empty() ? key : fmt::format("{}.{}", path_, key);
  }
  [[noreturn]] void bad(const char* key, const std::string& expected) const {
    bad_file(name_, where(key),
             fmt::format("is {}; expected {}", show_json(at_[key]), expected));
  }

 private:
  const std::string& name_;
  const std::string path_;
  const Json& at_;
};

struct File {
  std::vector<std::string> given_names;
  std::unordered_map<int64_t, int32_t> number_of;  // of an id
  std::vector<double> size;
  double limit = 0;  // of an accelerator
};

// Ops of one colour class form one group; other ops are alone.
class ColourClasses {
 public:
  int32_t of(const Fields& node) {
    if (!node.find("colorClass")) return next_++;
    const auto [it, added] = group_.emplace(node.integer("colorClass"), next_);
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
void read_node(const Fields& node, Objective objective, PlanProblem& p,
               File& f) {
  const int64_t id = node.integer("id");
  if (!f.number_of.emplace(id, static_cast<int32_t>(p.ids.size())).second) {
    node.bad("id", "an id that no node before has");
  }
  if (node.find("containedSubnodes")) {
    node.bad("containedSubnodes", "a node without it");
  }
  p.ids.push_back(id);
  const Json* name = node.find("name");
  f.given_names.push_back(name && name->is_string() ? name->get<std::string>()
                                                    : "");
  const bool supported = node.flag("supportedOnFpga");
  const double on_accelerator = node.number("fpgaLatency", 1e300);
  p.costs.times.push_back(declared(node.number("cpuLatency", 1e300)));
  p.costs.times.push_back(supported ? declared(on_accelerator) : OpTime());
  f.size.push_back(node.number_or("size", kMostBytes, 0));
  const bool latency = objective == Objective::kLatency;
  const bool backward =
      (!latency || node.find("isBackwardNode")) && node.flag("isBackwardNode");
  if (latency && backward) {
    node.bad("isBackwardNode",
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

Edges read_edges(const Fields& root, const std::string& name, const File& f) {
  const size_t n = f.number_of.size();
  Edges e{std::vector<std::vector<int32_t>>(n), std::vector<double>(n, -1),
          std::vector<int64_t>(n, 0)};
  const Json& edges = root.array("edges");
  for (size_t k = 0; k < edges.size(); ++k) {
    const Fields edge(name, fmt::format("edges[{}]", k), edges[k]);
    const auto end = [&](const char* key) {
      const auto it = f.number_of.find(edge.integer(key));
      if (it == f.number_of.end()) edge.bad(key, "the id of a node");
      return it->second;
    };
    const int32_t from = end("sourceId"), to = end("destId");
    if (from == to) edge.bad("destId", "another node than sourceId");
    const double cost = edge.number("cost", kNeverRuns);
    if (e.cost[from] >= 0 && std::abs(e.cost[from] - cost) > kSameCost) {
      edge.bad("cost", fmt::format("{}, as on the edges before from node {}",
                                   e.cost[from], edge.integer("sourceId")));
    }
    if (e.cost[from] < 0) e.cost[from] = cost;
    // Only for reports; the authors' programs do not read it.
    const Json* size = edge.find("size");
    const double bytes = size && size->is_number() ? size->get<double>() : 0;
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

// Limits are whole bytes. A fractional limit is multiplied, together with all
// sizes, by a power of two, which is exact. A limit that cannot bind is left
// out, and a limit of zero becomes a mask.
void set_limit(PlanProblem& p, const File& f) {
  double total = 0, unit = 1;
  for (const double s : f.size) total += s;
  if (total > kMostBytes) {
    bad_file(p.name, "nodes",
             fmt::format("have sizes of {:g} in all; expected {:g} at most",
                         total, kMostBytes));
  }
  const bool none = f.limit < kLeastBytes;
  const double limit = none || f.limit > kMostBytes ? 0 : f.limit;
  while (limit * unit != std::floor(limit * unit)) unit *= 2;
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

void set_devices(PlanProblem& p, const Fields& root, Objective objective) {
  const int accelerators = root.count("maxFPGAs");
  const int cpus = root.count("maxCPUs");
  for (int i = 0; i < accelerators; ++i) {
    add_device(p, fmt::format("ACC:{}", i), kAccelerator, CopyRule::kBoth, 0);
  }
  if (objective == Objective::kLatency) {
    add_device(p, "CPU", kCpu, CopyRule::kReceiving, 0);
  } else {
    for (int i = 0; i < cpus; ++i) {
      add_device(p, fmt::format("CPU:{}", i), kCpu, CopyRule::kReceiving, 0);
    }
  }
  const size_t devices = p.costs.devices.size();
  if (devices == 0 || devices > 64) {
    root.bad("maxFPGAs",
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
  const Fields root(name, "", json);
  PlanProblem p;
  p.name = name;
  p.time_unit = "";
  p.model = PlanModel::kLoad;
  if (objective == Objective::kLatency) use_pieces(p);
  p.costs.classes = {
      {.name = "CPU", .type = "CPU", .origin = CostOrigin::kDeclared},
      {.name = "accelerator", .type = "ACC", .origin = CostOrigin::kDeclared}};
  File f;
  f.limit = root.number("maxSizePerFPGA", 1e300);
  set_devices(p, root, objective);
  const Json& nodes = root.array("nodes");
  if (nodes.empty()) root.bad("nodes", "at least one node");
  ColourClasses colours;
  std::vector<int32_t> group;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Fields node(name, fmt::format("nodes[{}]", i), nodes[i]);
    read_node(node, objective, p, f);
    group.push_back(colours.of(node));
  }
  set_names(p, f);
  Edges e = read_edges(root, name, f);
  p.touch_us = std::move(e.cost);
  const std::vector<uint8_t> backward = std::move(p.backward);
  set_graph(p, std::move(e.inputs), e.bytes);
  p.backward = backward;
  p.group = std::move(group);
  p.num_groups = colours.size();
  set_limit(p, f);
  check_problem(p);
  return p;
}

}  // namespace berth
