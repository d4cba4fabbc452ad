// What a placement reports to the user: fallbacks, and where every node is.

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/bytes_text.h"
#include "base/diagnostics.h"
#include "device/device_manager.h"
#include "place/constraint_sets.h"
#include "place/device_table.h"
#include "place/schedule.h"

namespace berth {

namespace {

int64_t sent_bytes_of(const OutSpec& s) {
  const int64_t n = s.shape.num_elements();
  const bool counts = n > 0 && s.dtype != resource && s.dtype != variant &&
                      s.dtype != string_ && s.dtype != DType::kInvalid;
  for (int d = 0; d < s.shape.rank(); ++d) {
    if (s.shape[d] < 0) return 0;
  }
  return counts ? n * static_cast<int64_t>(size_of(s.dtype)) : 0;
}

// The nodes that read a value of `node`, directly or through aliases.
void add_readers(const Graph& graph,
                 const std::vector<std::vector<int32_t>>& users, int32_t node,
                 std::set<int32_t>* readers) {
  for (const int32_t u : users[node]) {
    if (!readers->insert(u).second) continue;
    if (graph[u].op->kind() == OpKind::kAlias) {
      add_readers(graph, users, u, readers);
    }
  }
}

}  // namespace

// Uses the nodes that partition() makes, so the count matches what runs.
std::vector<int64_t> crossing_bytes(const Graph& graph,
                                    const std::vector<int32_t>& nodes) {
  std::vector<int64_t> bytes(nodes.size(), 0);
  Graph cut = graph;
  partition(cut);
  std::map<std::string, std::vector<size_t>> asked;
  for (size_t k = 0; k < nodes.size(); ++k) {
    asked[graph[nodes[k]].name].push_back(k);
  }
  const std::vector<std::vector<int32_t>> users = cut.users();
  const OpDef& transfer = op_named("_Transfer");
  for (int32_t i = 0; i < cut.size(); ++i) {
    if (cut[i].op != &transfer) continue;
    std::set<int32_t> ends;
    add_readers(cut, users, i, &ends);
    int32_t from = cut[i].inputs[0].node;
    ends.insert(from);
    while (cut[from].op->kind() == OpKind::kAlias) {
      from = cut[from].inputs[0].node;
      ends.insert(from);
    }
    for (const int32_t end : ends) {
      const auto it = asked.find(cut[end].name);
      if (it == asked.end()) continue;
      for (const size_t k : it->second)
        bytes[k] += sent_bytes_of(cut[i].outputs[0]);
    }
  }
  return bytes;
}

std::vector<int64_t> crossing_bytes(const Graph& graph,
                                    const std::vector<PlaceFallback>& of) {
  std::vector<int32_t> nodes;
  for (const PlaceFallback& f : of) nodes.push_back(f.node);
  return crossing_bytes(graph, nodes);
}

namespace {

std::string cost_text(int64_t bytes) {
  return bytes > 0 ? fmt::format("; {} per step move because of it",
                                 bytes_text(bytes))
                   : "";
}

// Ops that were requested on a device that does not exist.
struct MissingDevice {
  const PlaceFallback* first = nullptr;
  int ops = 0;
  int64_t bytes = 0;
  std::set<std::string> runs_on;
};

debugging::Diagnostic missing_text(const Graph& graph, const MissingDevice& m) {
  std::string places;
  for (const std::string& p : m.runs_on) {
    places += (places.empty() ? "" : ", ") + p;
  }
  debugging::Diagnostic d;
  d.id = "fallback";
  d.severity = debugging::Severity::kWarning;
  d.site = site_of(graph, m.first->node);
  d.text = fmt::format(
      "{}: {} op{} of \"{}\" asked for it and run on {}, the first is {}{}; "
      "ask for {}, or allow this silently",
      m.first->reason, m.ops, m.ops == 1 ? "" : "s", graph.name, places,
      describe(graph, m.first->node), cost_text(m.bytes),
      DeviceManager::initialised() ? "one of " + DeviceManager::get().list()
                                   : "a device that exists");
  return d;
}

debugging::Diagnostic fallback_text(const Graph& graph, const PlaceFallback& f,
                                    int64_t bytes) {
  debugging::Diagnostic d;
  d.id = "fallback";
  d.severity = debugging::Severity::kWarning;
  d.site = site_of(graph, f.node);
  d.text = fmt::format(
      "{} was asked for on \"{}\" and runs on {}: {}{}; ask for a device that "
      "has it, or allow this silently",
      describe(graph, f.node), f.requested.text(),
      short_device(graph[f.node].assigned), f.reason, cost_text(bytes));
  return d;
}

}  // namespace

void report_fallbacks(const Graph& graph, const Placement& placement,
                      config::SoftPlacement soft) {
  if (placement.fallbacks.empty()) return;
  const std::vector<int64_t> bytes = crossing_bytes(graph, placement.fallbacks);
  std::map<std::string, MissingDevice> missing;
  const bool silent = soft == config::SoftPlacement::kSilent;
  for (size_t k = 0; k < bytes.size(); ++k) {
    const PlaceFallback& f = placement.fallbacks[k];
    // Arguments are requested on a device only by the engine.
    if (graph[f.node].op->kind() == OpKind::kArgument) continue;
    if (silent) {
      count_diagnostic("fallback");
    } else if (f.reason.starts_with("there is no \"")) {
      MissingDevice& m = missing[f.requested.text()];
      if (m.first == nullptr) m.first = &f;
      if (m.ops++ > 0) count_diagnostic("fallback");
      m.bytes += bytes[k];
      m.runs_on.insert(short_device(graph[f.node].assigned));
    } else {
      report_once(graph[f.node].op->name() + '\0' + f.reason,
                  fallback_text(graph, f, bytes[k]));
    }
  }
  for (const auto& [requested, m] : missing) {
    report_once(graph.name + '\0' + requested, missing_text(graph, m));
  }
}

void report_notes(const Graph& graph, const Placement& placement,
                  config::SoftPlacement soft) {
  for (const PlaceNote& n : placement.notes) {
    const Node& node = graph[n.node];
    // A scope around a step does not move variables; reports list them.
    if (node.op->kind() == OpKind::kArgument || node.op->has_variables())
      continue;
    if (soft == config::SoftPlacement::kSilent) {
      count_diagnostic(n.id);
      continue;
    }
    const Site site = site_of(graph, n.node);
    const char* advice = n.id == "request-ignored"
                             ? "ask for no device there, or for both on one"
                             : "give that device the kernel, or leave it so";
    report_once(fmt::format("{} {}:{}", site.file ? node.op->name() : node.name,
                            site.file ? site.file : "", site.line),
                {n.id, debugging::Severity::kWarning,
                 fmt::format("{}; {}", n.text, advice), site});
  }
}

void log_placement(const Graph& graph) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& n = graph[i];
    report({"placement", debugging::Severity::kInfo,
            fmt::format("{}: ({}): {}", n.name, n.op->name(),
                        short_device(n.assigned)),
            site_of(graph, i)});
  }
}

}  // namespace berth
