#include "place/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "berth/errors.h"
#include "place/order.h"
#include "place/placer.h"

namespace berth {

namespace {

class Scheduler {
 public:
  Scheduler(const Graph& graph, bool in_order)
      : graph_(graph), work_(find_work(graph, in_order)) {}

  Schedule run() {
    number_streams();
    const size_t n = work_.order.size();
    result_.steps.resize(n);
    clock_.assign(n * num_streams(), -1);
    known_.assign(num_streams(), std::vector<int32_t>(num_streams(), -1));
    touched_.assign(num_streams(), std::vector<int32_t>(num_streams(), -1));
    step_of_.assign(graph_.nodes.size(), -1);
    latest_.assign(num_streams(), -1);
    for (size_t s = 0; s < n; ++s) add_step(static_cast<int32_t>(s));
    add_joins();
    return std::move(result_);
  }

 private:
  size_t num_streams() const { return result_.streams.size(); }
  int32_t* clock(int32_t step) { return &clock_[step * num_streams()]; }

  // Devices in order of first use; copy streams follow all compute streams.
  void number_streams() {
    std::unordered_map<DeviceId, int32_t> numbers;
    device_.resize(graph_.nodes.size());
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const DeviceId name = graph_[i].assigned;
      if (name.empty()) {
        throw errors::FailedPrecondition(fmt::format(
            "make_schedule: \"{}\" has no device; expected a placed graph",
            graph_[i].name));
      }
      const auto [it, fresh] =
          numbers.try_emplace(name, static_cast<int32_t>(numbers.size()));
      if (fresh) result_.streams.push_back({name, false});
      device_[i] = it->second;
    }
    // Aliases of a handed-over value are in the memory of its producer; slices
    // and values of variables are in that of the variable.
    memory_ = device_;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const OpKind kind = graph_[i].op->kind();
      if (kind == OpKind::kAlias || kind == OpKind::kReadVariable ||
          graph_[i].op == &range_) {
        memory_[i] = memory_[graph_[i].inputs[0].node];
      }
    }
    copy_stream_.assign(numbers.size(), -1);
    for (int32_t i = 0; i < graph_.size(); ++i) {
      int32_t& stream = copy_stream_[device_[i]];
      if (!work_.is_transfer[i] || stream >= 0) continue;
      stream = static_cast<int32_t>(num_streams());
      result_.streams.push_back({graph_[i].assigned, true});
    }
    result_.final_waits.resize(num_streams());
    result_.start_waits.resize(num_streams());
  }

  // Steps are numbered in launch order, so within a stream a larger number is
  // later, and a clock holds, per stream, the latest step known to be done.
  void add_step(int32_t s) {
    ScheduleStep& step = result_.steps[s];
    step.node = work_.order[s];
    step_of_[step.node] = s;
    const int32_t home = device_[step.node];
    const bool transfer = work_.is_transfer[step.node];
    step.stream = transfer ? copy_stream_[home] : home;
    // Only the latest step of each other stream matters.
    std::vector<int32_t> latest;
    for (int32_t before : work_.waits_for[step.node]) {
      const int32_t on = result_.steps[step_of_[before]].stream;
      if (on == step.stream) continue;
      if (latest_[on] < 0) latest.push_back(on);
      latest_[on] = std::max(latest_[on], step_of_[before]);
    }
    for (int32_t& l : latest) l = std::exchange(latest_[l], -1);
    step.waits = reduce(latest, known_[step.stream]);
    std::vector<int32_t>& known = known_[step.stream];
    for (int32_t w : step.waits) learn(known, w);
    known[step.stream] = s;
    std::copy(known.begin(), known.end(), clock(s));
    note_memory(step, s);
  }

  // Drops steps that are already known done or implied by another wait.
  // `latest` has at most one step per stream.
  std::vector<int32_t> reduce(const std::vector<int32_t>& latest,
                              const std::vector<int32_t>& known) {
    std::vector<int32_t> waits;
    for (int32_t w : latest) {
      const int32_t on = result_.steps[w].stream;
      const bool implied =
          known[on] >= w ||
          std::any_of(latest.begin(), latest.end(),
                      [&](int32_t o) { return o != w && clock(o)[on] >= w; });
      if (!implied) waits.push_back(w);
    }
    std::sort(waits.begin(), waits.end());
    return waits;
  }

  void learn(std::vector<int32_t>& known, int32_t step) {
    const int32_t* c = clock(step);
    for (size_t u = 0; u < known.size(); ++u)
      known[u] = std::max(known[u], c[u]);
  }

  // Notes which memory the step reads or writes. Compute stream d is device d.
  void note_memory(const ScheduleStep& step, int32_t s) {
    auto touch = [&](int32_t device) { touched_[device][step.stream] = s; };
    const int32_t home = device_[step.node];
    touch(home);
    const bool transfer = work_.is_transfer[step.node];
    for (const ValueRef& v : graph_[step.node].inputs) {
      touch(memory_[v.node]);
      // A variable of another device is as that device left it.
      if (graph_.spec(v).dtype == resource && memory_[v.node] != home) {
        start_after(step.stream, memory_[v.node]);
      }
      if (transfer && work_.is_source(v.node)) {
        start_after(step.stream, memory_[v.node]);
      }
    }
    if (transfer) start_after(step.stream, device_[step.node]);
  }

  void start_after(int32_t copy, int32_t compute) {
    std::vector<int32_t>& waits = result_.start_waits[copy];
    const auto it = std::lower_bound(waits.begin(), waits.end(), compute);
    if (it == waits.end() || *it != compute) waits.insert(it, compute);
  }

  void add_joins() {
    for (size_t d = 0; d < copy_stream_.size(); ++d) {
      std::vector<int32_t> latest;
      for (size_t s = 0; s < num_streams(); ++s) {
        if (s != d && touched_[d][s] >= 0) latest.push_back(touched_[d][s]);
      }
      result_.final_waits[d] = reduce(latest, known_[d]);
    }
  }

  const Graph& graph_;
  const OpDef& range_ = op_named("_VariableRange");
  const WorkOrder work_;
  Schedule result_;
  std::vector<int32_t> device_;              // per node: its compute stream
  std::vector<int32_t> memory_;              // per node: where its bytes are
  std::vector<int32_t> copy_stream_;         // per device; -1: none
  std::vector<int32_t> step_of_;             // per node
  std::vector<int32_t> latest_;              // per stream; all -1 between steps
  std::vector<int32_t> clock_;               // per step and stream
  std::vector<std::vector<int32_t>> known_;  // per stream: its current clock
  std::vector<std::vector<int32_t>> touched_;  // per device and stream
};

std::string stream_name(const StreamRef& s) {
  return short_device(s.device) + (s.copy ? "/copy" : "");
}

void print_waits(std::string& out, const std::vector<int32_t>& waits) {
  const char* separator = " wait ";
  for (int32_t w : waits) {
    out += separator + std::to_string(w);
    separator = ",";
  }
  out += '\n';
}

}  // namespace

Schedule make_schedule(const Graph& graph, bool in_order) {
  return Scheduler(graph, in_order).run();
}

std::string print(const Schedule& schedule, const Graph& graph) {
  std::vector<std::string> names;
  for (const StreamRef& s : schedule.streams) names.push_back(stream_name(s));
  std::string out;
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const ScheduleStep& step = schedule.steps[i];
    out +=
        fmt::format("{} {} {}", i, names[step.stream], graph[step.node].name);
    print_waits(out, step.waits);
  }
  for (size_t s = 0; s < schedule.final_waits.size(); ++s) {
    if (schedule.final_waits[s].empty()) continue;
    out += "end " + names[s];
    print_waits(out, schedule.final_waits[s]);
  }
  return out;
}

}  // namespace berth
