#include "function/fit_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes_text.h"
#include "base/diagnostics.h"
#include "device/device_manager.h"
#include "device/memory_snapshot.h"
#include "exec/measure_costs.h"
#include "function/compile.h"
#include "function/state_homes.h"
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
    Graph copy = planned_;
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
    Graph g = planned_;
    put(g, part);
    Graph placed = g;
    place(placed, places_);
    return compile_as(g, placed);
  }
  CompiledTrial compile_as(const Graph& g, const Graph& placed) const {
    std::vector<DeviceId> device;
    for (const Node& n : placed.nodes) device.push_back(n.assigned);
    return {g, device, places_, options_};
  }
  // Returns the time of one run of the part.
  double predicted_us(const Part& part) const {
    return compile_as(part.graph, part.graph).predicted_us();
  }

  // Bytes of a device that the step may have: its limit without what others
  // use.
  int64_t room_on(Device& device) const {
    for (Stream* s : {&device.compute_stream(), &device.copy_stream()}) {
      finish(s->record());  // frees what has ended
    }
    int64_t own_bytes = 0;
    for (const Tensor& handle : variables_of(graph_)) {
      const VariableState& v = variable_state(handle);
      if (v.device == &device)
        own_bytes += static_cast<int64_t>(v.size_bytes());
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

  // What was found with the variables where they are planned.
  struct Found {
    int64_t peak = 0, bytes = 0;  // as it is; at last, or the least
    double whole_us = 0, us = 0;  // the same, of one turn of a loop
    bool fits = false;
    std::optional<Part> part;  // that is new
    Recomputed what;
  };

  void fit(const DeviceCost& d) {
    Device& device = DeviceManager::get().lookup(DeviceName::parse(d.name));
    int64_t room = room_on(device);
    StateHomes homes(graph_, device);
    std::optional<Found> first;
    for (;;) {
      planned_ = homes.planned(graph_);
      const Found found = find(d, room, homes);
      if (!first) first = found;
      if (!found.fits) {
        if (homes.leave()) {
          room = room_on(device);  // what is in pieces counts as a whole again
          continue;
        }
        if (homes.let_go(found.bytes - room)) continue;
        homes.move();
        return warn(d, room, first->peak, found.bytes);
      }
      homes.move();
      // Variables that moved may have left holes; what is free is not kept in
      // large pieces in which arguments would find their place.
      if (!first->fits) device.allocator().empty_cache();
      room = std::min(room, room_on(device));
      if (found.bytes > room) continue;
      if (found.part) {
        put(planned_, *found.part);
        homes.restore(planned_);
        graph_ = planned_;
      }
      return say(d, room, *first, found, homes.bytes_on_host());
    }
  }

  // The part that holds most on a device: the step, or the body that repeats
  // it.
  Part largest(const DeviceCost& d, std::vector<Part> all) const {
    size_t most = 0;
    int64_t most_bytes = -1;
    for (size_t i = 0; i < all.size(); ++i) {
      const int64_t bytes =
          most_bytes_alive(all[i].graph, costs_on(d, all[i].graph));
      if (bytes <= most_bytes) continue;
      most = i;
      most_bytes = bytes;
    }
    return std::move(all[most]);
  }

  Found find(const DeviceCost& d, int64_t room, const StateHomes& homes) const {
    std::vector<Part> all = parts();
    Found found;
    found.peak = found.bytes = compile(all[0]).peak_bytes(d.name);
    found.fits = found.peak <= room;
    if (found.fits && homes.bytes_on_host() == 0) return found;
    Part most = largest(d, std::move(all));
    found.whole_us = found.us = predicted_us(most);
    if (found.fits) return found;
    if (homes.streams()) {
      stream_from_host(most.graph, costs_on(d, most.graph));
      found.bytes = compile(most).peak_bytes(d.name);
      found.us = predicted_us(most);
      found.part = most;
      found.fits = found.bytes <= room;
      if (found.fits) return found;
    }
    const RecomputeCosts costs = costs_on(d, most.graph);
    // What the plan has beside the results in the graph's order stays.
    int64_t limit = most_bytes_alive(most.graph, costs) - (found.bytes - room);
    for (int k = 0; k < kMostTrials; ++k) {
      Part less = most;
      Recomputed what = recompute(less.graph, costs, limit);
      const int64_t bytes = compile(less).peak_bytes(d.name);
      if (bytes > room) {
        if (!found.fits) found.bytes = std::min(found.bytes, bytes);
        if (found.fits || what.bytes > limit) break;  // no more is to be had
        limit -= std::max(bytes - room, room / 32);
        continue;
      }
      const double unused = static_cast<double>(room - bytes);
      limit += (room - bytes) / 2;
      const double us = predicted_us(less);
      if (!found.fits || us < found.us) {
        found.bytes = bytes;
        found.us = us;
        found.fits = true;
        found.part = std::move(less);
        found.what = std::move(what);
      }
      if (unused <= kSlack * static_cast<double>(room)) break;
    }
    return found;
  }

  void say(const DeviceCost& d, int64_t room, const Found& first,
           const Found& found, int64_t on_host) const {
    if (on_host > 0) {
      tell("state-on-host", debugging::Severity::kInfo, d, room, first.peak,
           fmt::format("{} of its variables are on the host, and their updates "
                       "run there: {}",
                       bytes_text(on_host), longer(found, first)));
    }
    const Recomputed& what = found.what;
    if (what.bytes == 0) return;
    std::string names;
    const size_t count = what.names.size();
    for (size_t i = 0; i < std::min(count, kMostNames); ++i) {
      names += (i > 0 ? ", " : "") + what.names[i];
    }
    const std::string away =
        what.away.empty()
            ? ""
            : fmt::format(" and {} results wait on the host", what.away.size());
    tell("computed-again", debugging::Severity::kInfo, d, room, first.peak,
         fmt::format(
             "{} ops run twice so that their results need not be kept{}, "
             "which takes {}: {}{}",
             count, away, longer(found, first), names,
             count > kMostNames ? ", ..." : ""));
  }
  static std::string longer(const Found& found, const Found& first) {
    return fmt::format("{:.0f} % more time",
                       100 * (found.us / first.whole_us - 1));
  }

  void warn(const DeviceCost& d, int64_t room, int64_t peak,
            int64_t least) const {
    tell("does-not-fit", debugging::Severity::kWarning, d, room, peak,
         fmt::format("{} if all that can be is computed again, and all "
                     "variables that can are on the host; use a smaller batch "
                     "or more devices",
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
  Graph planned_;  // with variables where they are planned
  const PlaceOptions& places_;
  const TrialOptions options_;
};

}  // namespace

void fit_memory(Graph& graph, const PlaceOptions& devices,
                const TrialOptions& options) {
  Fitter(graph, devices, options).run();
}

}  // namespace berth
