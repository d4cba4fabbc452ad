#include "function/fit_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes_text.h"
#include "base/diagnostics.h"
#include "device/device_manager.h"
#include "device/memory_snapshot.h"
#include "exec/measure_costs.h"
#include "function/compile.h"
#include "graph/body.h"
#include "op/device_scope.h"
#include "passes/recompute.h"
#include "place/device_table.h"
#include "place/order.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

constexpr int kMostTrials = 8;
constexpr size_t kMostNames = 5;
// A plan that leaves no more than this share of the limit unused is good.
constexpr double kSlack = 0.03;

class Fitter {
 public:
  Fitter(Graph& graph, const PlaceOptions& places, const TrialOptions& options)
      : graph_(graph), places_(places), options_(options) {}

  void run() {
    for (const DeviceCost& d : this_machine().devices) {
      if (d.memory_limit > 0) fit(d);
    }
  }

 private:
  // The graph, or a body in it, as placed.
  struct Part {
    std::string path;  // "": the graph
    Graph graph;
  };

  std::vector<Part> parts() const {
    Graph copy = graph_;
    std::vector<Part> all;
    collect(place_all(copy, places_, options_.optimize, true), all);
    return all;
  }
  void collect(PlacedGraph placed, std::vector<Part>& all) const {
    number_as_run(placed.graph);
    all.push_back({placed.path, std::move(placed.graph)});
    for (PlacedGraph& body : placed.bodies) collect(std::move(body), all);
  }

  // Updates of variables run early: so they free gradients.
  void number_as_run(Graph& g) const {
    const WorkOrder work = find_work(g, options_.in_order);
    std::vector<int32_t> to(g.nodes.size());
    int32_t next = 0;
    for (int32_t i = 0; i < g.size(); ++i) {
      if (work.is_source(i)) to[static_cast<size_t>(i)] = next++;
    }
    for (const int32_t i : work.order) to[static_cast<size_t>(i)] = next++;
    g.renumber(to);
  }

  // Puts a part in its place, without its devices, since the rules find the
  // same; with them where some were given.
  static void put(Graph& g, const Part& part, const std::string& path = "") {
    if (path == part.path) {
      const bool given =
          std::any_of(g.nodes.begin(), g.nodes.end(),
                      [](const Node& n) { return !n.assigned.empty(); });
      g.nodes = part.graph.nodes;
      g.args = part.graph.args;
      g.outputs = part.graph.outputs;
      if (given) return;
      for (Node& n : g.nodes) {
        if (n.assigned != DeviceManager::get().host().id()) n.assigned.clear();
      }
      return;
    }
    for (Node& n : g.nodes) {
      rewrite_bodies(n, [&](const std::string& role, Graph& body) {
        const std::string at = body_path(path, n, role);
        if (!part.path.starts_with(at)) return false;
        put(body, part, at);
        return true;
      });
    }
  }

  // The graph with a part in it, compiled on trial.
  CompiledTrial compile(const Part& part) const {
    Graph g = graph_;
    put(g, part);
    Graph placed = g;
    place(placed, places_);
    std::vector<DeviceId> device;
    for (const Node& n : placed.nodes) device.push_back(n.assigned);
    return {g, device, places_, options_};
  }

  // Bytes of a device that the step may have: its limit without what others
  // use.
  int64_t room_on(const DeviceCost& d, const std::vector<Part>& all) const {
    Device& device = DeviceManager::get().lookup(DeviceName::parse(d.name));
    for (Stream* s : {&device.compute_stream(), &device.copy_stream()}) {
      finish(s->record());  // frees what has ended
    }
    std::set<const VariableState*> own;
    for (const Part& part : all) {
      for (const Node& n : part.graph.nodes) {
        if (n.variable.defined()) own.insert(&variable_state(n.variable));
      }
    }
    int64_t own_bytes = 0;
    for (const VariableState* v : own) {
      if (v->device == &device)
        own_bytes += static_cast<int64_t>(v->size_bytes());
    }
    return room_for_step(device.allocator(), own_bytes);
  }

  RecomputeCosts costs_on(const DeviceCost& d, const Graph& g) const {
    const CostTable table = kept_costs(g);
    const int32_t device = table.find(d.name);
    const Device& host = DeviceManager::get().host();
    const int32_t to = table.find(host.str());
    const bool apart = to >= 0 && !DeviceId(d.name).is_cpu();
    RecomputeCosts costs;
    costs.host = host.id();
    for (int32_t i = 0; i < g.size(); ++i) {
      const Node& n = g[i];
      const bool here = n.assigned.name() == DeviceName::parse(d.name);
      const OpKind kind = n.op->kind();
      const bool again = here && !n.has_effect() && !n.op->random() &&
                         !n.collective &&
                         (kind == OpKind::kCompute || kind == OpKind::kAlias);
      costs.counted.push_back(here);
      costs.us.push_back(again ? table.time(i, device).us : -1);
      double away = -1;
      if (apart && again && kind == OpKind::kCompute && n.outputs.size() == 1) {
        const int64_t bytes = table.bytes_of({i, 0});
        away = table.link(device, to).time_us(bytes) +
               table.link(to, device).time_us(bytes);
      }
      costs.away_us.push_back(away);
    }
    return costs;
  }

  struct Fitted {
    Part part;
    Recomputed what;
    double us = 0;
  };

  void fit(const DeviceCost& d) {
    std::vector<Part> all = parts();
    CompiledTrial whole = compile(all[0]);
    const int64_t room = room_on(d, all);
    const int64_t peak = whole.peak_bytes(d.name);
    if (peak <= room) return;
    // The part that holds most there: the step, or the body that repeats it.
    const Part* most = nullptr;
    RecomputeCosts costs;
    int64_t most_bytes = -1;
    for (const Part& part : all) {
      RecomputeCosts of_part = costs_on(d, part.graph);
      const int64_t bytes = most_bytes_alive(part.graph, of_part);
      if (bytes <= most_bytes) continue;
      most = &part;
      most_bytes = bytes;
      costs = std::move(of_part);
    }
    // What the plan has beside the results in the graph's order stays.
    int64_t limit = most_bytes - (peak - room), least = peak;
    std::optional<Fitted> best;
    for (int k = 0; k < kMostTrials; ++k) {
      Fitted less{*most, {}};
      less.what = recompute(less.part.graph, costs, limit);
      CompiledTrial trial = compile(less.part);
      const int64_t bytes = trial.peak_bytes(d.name);
      least = std::min(least, bytes);
      if (bytes > room) {
        if (best) break;
        limit -= std::max(bytes - room, room / 32);
        continue;
      }
      const double unused = static_cast<double>(room - bytes);
      limit += (room - bytes) / 2;
      less.us = trial.predicted_us();
      if (!best || less.us < best->us) best = std::move(less);
      if (unused <= kSlack * static_cast<double>(room)) break;
    }
    if (!best) {
      warn(d, room, peak, least);
      return;
    }
    say(d, room, peak, whole.predicted_us(), *best);
    put(graph_, best->part);
  }

  void say(const DeviceCost& d, int64_t room, int64_t peak, double whole_us,
           const Fitted& f) const {
    std::string names;
    const size_t count = f.what.names.size();
    for (size_t i = 0; i < std::min(count, kMostNames); ++i) {
      names += (i > 0 ? ", " : "") + f.what.names[i];
    }
    const std::string away =
        f.what.away.empty() ? ""
                            : fmt::format(" and {} results wait on the host",
                                          f.what.away.size());
    tell("computed-again", debugging::Severity::kInfo, d, room, peak,
         fmt::format(
             "{} ops run twice so that their results need not be kept{}, "
             "which takes {:.0f} % more time: {}{}",
             count, away, 100 * (f.us / whole_us - 1), names,
             count > kMostNames ? ", ..." : ""));
  }

  void warn(const DeviceCost& d, int64_t room, int64_t peak,
            int64_t least) const {
    tell("does-not-fit", debugging::Severity::kWarning, d, room, peak,
         fmt::format("{} if all that can be is computed again; use a smaller "
                     "batch or more devices",
                     bytes_text(least)));
  }

  void tell(const char* id, debugging::Severity severity, const DeviceCost& d,
            int64_t room, int64_t peak, const std::string& end) const {
    const std::string text = fmt::format(
        "function \"{}\": its step takes {} of the {} that {} has left; {}",
        graph_.name, bytes_text(peak), bytes_text(room), short_device(d.name),
        end);
    report_once(text, {id, severity, text, t_state.site});
  }

  Graph& graph_;
  const PlaceOptions& places_;
  const TrialOptions options_;
};

}  // namespace

void fit_memory(Graph& graph, const PlaceOptions& devices,
                const TrialOptions& options) {
  Fitter(graph, devices, options).run();
}

}  // namespace berth
