#include "cli/place_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes_text.h"
#include "base/compared_bytes.h"
#include "berth/errors.h"
#include "cli/colours.h"
#include "cli/commands.h"
#include "place/device_table.h"
#include "place/explain.h"

namespace berth::cli {

namespace {

std::string value_name(const Graph& graph, ValueRef v) {
  return fmt::format("{}:{}", graph[v.node].name, v.output);
}

Json node_json(const PlaceResult& r, int32_t i) {
  const Node& n = r.graph[i];
  const PlaceReason& reason = r.placement.reasons[i];
  Json node = {{"name", n.name},
               {"op", n.op->name()},
               {"device", n.assigned.text()},
               {"rule", rule_name(reason.rule)}};
  if (!n.requested.empty()) node["requested"] = n.requested.text();
  if (reason.because >= 0 && reason.because != i) {
    node["because"] = r.graph[reason.because].name;
  }
  if (r.simulation) {
    node["start_us"] = r.simulation->start_us[i];
    node["end_us"] = r.simulation->end_us[i];
  }
  return node;
}

Json simulation_json(const PlaceResult& r) {
  const Simulation& s = *r.simulation;
  Json devices = Json::array(), transfers = Json::array();
  for (size_t d = 0; d < r.costs->devices.size(); ++d) {
    devices.push_back(
        {{"name", r.costs->devices[d].name},
         {"busy_us", s.busy_us[d]},
         {"copy_busy_us", s.copy_busy_us[d]},
         {"peak_bytes", s.peak_bytes[d]},
         {"memory_limit_bytes", r.costs->devices[d].memory_limit}});
  }
  for (const SimulatedTransfer& t : s.transfers) {
    transfers.push_back({{"value", value_name(r.graph, t.value)},
                         {"from", r.costs->devices[t.from].name},
                         {"to", r.costs->devices[t.to].name},
                         {"bytes", t.bytes},
                         {"start_us", t.start_us},
                         {"end_us", t.end_us}});
  }
  return {{"step_us", s.step_us},
          {"sent_bytes", s.sent_bytes},
          {"devices", std::move(devices)},
          {"transfers", std::move(transfers)}};
}

// Returns 0 where the shape is unknown.
int64_t value_bytes(const OutSpec& s) {
  const int64_t n = s.shape.num_elements();
  const auto size = static_cast<int64_t>(size_of(s.dtype));
  return n <= 0 || size == 0 || n > INT64_MAX / size ? 0 : n * size;
}

// Names of devices, and what each holds.
class Summary {
 public:
  Summary(const PlaceResult& r, bool full) : full_(full) {
    std::map<std::string, DeviceId> shorts;
    for (const Node& n : r.graph.nodes) {
      const auto [at, is_new] =
          shorts.emplace(short_device(n.assigned), n.assigned);
      full_ |= !is_new && at->second != n.assigned;
    }
    std::set<std::pair<ValueRef, DeviceId>> sent;
    for (const Node& n : r.graph.nodes) {
      Row& row = row_of(n.assigned);
      ++row.ops;
      for (const ValueRef& v : n.inputs) {
        if (r.graph[v.node].assigned == n.assigned) continue;
        if (!sent.emplace(v, n.assigned).second) continue;
        const int64_t bytes = value_bytes(r.graph.spec(v));
        row_of(n.assigned).received += bytes;
        row_of(r.graph[v.node].assigned).sent += bytes;
      }
    }
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      const auto key = [](const DeviceName& n) {
        return std::tie(n.job, n.replica, n.task, n.type, n.id);
      };
      return key(a.device.name()) < key(b.device.name());
    });
    for (size_t i = 0; i < rows_.size(); ++i) places_[rows_[i].device] = i;
  }

  std::string name(DeviceId device) const {
    return colours_.number(places_.at(device),
                           full_ ? device.text() : short_device(device));
  }

  std::string str() const {
    std::string s;
    for (const Row& row : rows_) {
      s += fmt::format("{}: {} op{}", name(row.device), row.ops,
                       row.ops == 1 ? "" : "s");
      if (row.received > 0) {
        s += fmt::format(", receives {} per step", bytes_text(row.received));
      }
      if (row.sent > 0) s += fmt::format(", sends {}", bytes_text(row.sent));
      s += '\n';
    }
    return s;
  }

 private:
  struct Row {
    DeviceId device;
    int64_t ops = 0, received = 0, sent = 0;
  };

  Row& row_of(DeviceId device) {
    const auto [at, is_new] = places_.emplace(device, rows_.size());
    if (is_new) rows_.push_back({device});
    return rows_[at->second];
  }

  bool full_;
  const Colours colours_{stdout};
  std::vector<Row> rows_;
  std::map<DeviceId, size_t> places_;
};

void append_simulation(const PlaceResult& r, std::string* out) {
  const Simulation& s = *r.simulation;
  const auto to = std::back_inserter(*out);
  fmt::format_to(to, "simulated: step {:.1f} us, {} transfers, {} sent\n",
                 s.step_us, s.transfers.size(), bytes_text(s.sent_bytes));
  for (size_t d = 0; d < r.costs->devices.size(); ++d) {
    const DeviceCost& device = r.costs->devices[d];
    const bool fits =
        device.memory_limit == 0 || s.peak_bytes[d] <= device.memory_limit;
    const auto [peak, most] =
        compared_bytes(s.peak_bytes[d], device.memory_limit);
    fmt::format_to(to, "  {}: busy {:.1f} us, copies in {:.1f} us, peak {}{}\n",
                   device.name, s.busy_us[d], s.copy_busy_us[d], peak,
                   fits ? "" : fmt::format(", more than its {}", most));
  }
}

const char* kind_name(PlaceConstraint::Kind kind) {
  using Kind = PlaceConstraint::Kind;
  switch (kind) {
    case Kind::kAssigned:
      return "assigned";
    case Kind::kVariable:
      return "variable";
    case Kind::kResource:
      return "resource";
    case Kind::kRequest:
      return "request";
    case Kind::kKernels:
      return "kernels";
    case Kind::kHost:
      return "host";
    case Kind::kResourceEdge:
      return "resource_edge";
    case Kind::kRefEdge:
      return "ref_edge";
    case Kind::kVariantEdge:
      return "variant_edge";
    case Kind::kGroup:
      return "group";
    case Kind::kCall:
      return "call";
  }
  return "none";
}

Json conflict_json(const std::exception& error) {
  Json list = Json::array();
  const auto* failure = dynamic_cast<const PlaceFailure*>(&error);
  if (failure == nullptr) return list;
  for (const PlaceConstraint& c : failure->conflict().constraints) {
    Json one = {{"kind", kind_name(c.kind)}, {"text", c.text}};
    if (!c.node_name.empty()) one["node"] = c.node_name;
    if (!c.other_name.empty()) one["other"] = c.other_name;
    if (!c.function.empty()) one["function"] = c.function;
    if (c.site.file != nullptr) {
      one["file"] = c.site.file;
      one["line"] = c.site.line;
    }
    list.push_back(std::move(one));
  }
  return list;
}

template <class E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

}  // namespace

void print(const Json& document) {
  fmt::print("{}\n",
             document.dump(2, ' ', false, Json::error_handler_t::replace));
}

Json to_json(const PlaceResult& r) {
  Json nodes = Json::array(), notes = Json::array(), fallbacks = Json::array();
  for (int32_t i = 0; i < r.graph.size(); ++i) nodes.push_back(node_json(r, i));
  for (const PlaceNote& n : r.placement.notes) {
    notes.push_back(
        {{"id", n.id}, {"node", r.graph[n.node].name}, {"text", n.text}});
  }
  const std::vector<int64_t> bytes =
      crossing_bytes(r.graph, r.placement.fallbacks);
  for (size_t k = 0; k < bytes.size(); ++k) {
    const PlaceFallback& f = r.placement.fallbacks[k];
    fallbacks.push_back({{"node", r.graph[f.node].name},
                         {"requested", f.requested.text()},
                         {"device", r.graph[f.node].assigned.text()},
                         {"reason", f.reason},
                         {"bytes", bytes[k]}});
  }
  Json all = {{"nodes", std::move(nodes)},
              {"notes", std::move(notes)},
              {"fallbacks", std::move(fallbacks)}};
  if (r.simulation) all["simulation"] = simulation_json(r);
  if (r.explanation) {
    all["explanation"] = Json::parse(r.explanation->json(), nullptr, false);
  }
  if (!r.partitioned.empty()) all["partitioned"] = r.partitioned;
  return all;
}

void print_text(const PlaceResult& r, bool full) {
  const Summary summary(r, full);
  const Colours colours(stdout);
  std::string out;
  const auto to = std::back_inserter(out);
  for (const Node& n : r.graph.nodes) {
    if (r.explanation) break;  // print only the requested explanation
    fmt::format_to(to, "{}: ({}): {}\n", n.name, n.op->name(),
                   summary.name(n.assigned));
  }
  for (const PlaceNote& n : r.placement.notes) {
    fmt::format_to(to, "{} {}: {}\n", colours.warning("note"), n.id, n.text);
  }
  const std::vector<int64_t> bytes =
      crossing_bytes(r.graph, r.placement.fallbacks);
  for (size_t k = 0; k < bytes.size(); ++k) {
    const PlaceFallback& f = r.placement.fallbacks[k];
    const Node& n = r.graph[f.node];
    fmt::format_to(to,
                   "{}: {} was asked for on \"{}\", runs on {}: {}; {} per "
                   "step\n",
                   colours.warning("fallback"), n.name, f.requested.text(),
                   summary.name(n.assigned), f.reason, bytes_text(bytes[k]));
  }
  if (!r.explanation) out += "\n" + summary.str();
  if (r.simulation) append_simulation(r, &out);
  if (r.explanation) out += r.explanation->str();
  if (!r.partitioned.empty()) out += "\n" + r.partitioned;
  std::fwrite(out.data(), 1, out.size(), stdout);
}

void print_error(const std::exception& error) {
  const char* kind = is<UsageError>(error)                ? "BadInput"
                     : is<errors::Unimplemented>(error)   ? "Unimplemented"
                     : is<errors::InvalidArgument>(error) ? "InvalidArgument"
                     : is<errors::ResourceExhausted>(error)
                         ? "ResourceExhausted"
                         : "Internal";
  print({{"error",
          {{"kind", kind},
           {"message", error.what()},
           {"conflict", conflict_json(error)}}}});
}

}  // namespace berth::cli
