// Advice: what to change, and how much shorter a step becomes.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiler/busy.h"

namespace berth::profiler {

namespace {

constexpr double kLeastShare = 0.03;

class Adviser {
 public:
  Adviser(const EventIndex& x, const Analysis& a)
      : x_(x),
        a_(a),
        steps_(static_cast<double>(std::max<int64_t>(a.steps, 1))) {}

  std::vector<Advice> all() {
    if (a_.step_us <= 0) return {};
    input();
    transfers();
    shares();
    tiny_ops();
    sums();
    memory_bound();
    std::erase_if(found_,
                  [](const Advice& f) { return f.share < kLeastShare; });
    std::stable_sort(found_.begin(), found_.end(),
                     [](auto& p, auto& q) { return p.gain_us > q.gain_us; });
    if (found_.size() > 5) found_.resize(5);
    return found_;
  }

 private:
  void add(std::string title, std::string line, std::string formula,
           double us) {
    us = std::min(us, a_.step_us);
    found_.push_back({std::move(title), std::move(line), std::move(formula), us,
                      us / a_.step_us});
  }

  void input() {
    const double wait = a_.input_us;
    if (wait <= 0) return;
    const double rest = std::max(0.0, a_.step_us - wait);
    double producer = wait;
    std::string title = "Prepare batches while the step runs: prefetch";
    std::string line;
    if (!a_.stages.empty()) {
      const InputStageUse& slow = a_.stages.front();
      producer = slow.own_us / steps_;
      title = fmt::format(
          "Speed up the input stage \"{}\": prefetch after it, "
          "more parallel calls",
          slow.name);
      line = slow.line;
    }
    double gain = wait - std::max(0.0, producer - rest);
    std::string formula = fmt::format(
        "wait {:.0f} us - max(0, stage {:.0f} us - rest of the step "
        "{:.0f} us)",
        wait, producer, rest);
    if (gain < wait / 2) {  // overlap alone does not help: two at a time
      gain = wait - std::max(0.0, producer / 2 - rest);
      formula = fmt::format(
          "with 2 parallel calls: wait {:.0f} us - max(0, "
          "stage {:.0f} us / 2 - rest of the step {:.0f} us)",
          wait, producer, rest);
    }
    add(title, line, formula, gain);
  }

  // The edge that is longest on the critical path, with the op that reads it.
  void transfers() {
    std::map<std::string, double> edges;
    const OpSummary* longest = nullptr;
    for (const OpSummary& row : a_.ops) {
      if (row.kind != "copy" || row.critical_us <= 0) continue;
      edges[row.detail] += row.critical_us;
      if (longest == nullptr || row.critical_us > longest->critical_us) {
        longest = &row;
      }
    }
    if (longest == nullptr) return;
    const auto edge =
        std::max_element(edges.begin(), edges.end(),
                         [](auto& p, auto& q) { return p.second < q.second; });
    // There and back: an op on the wrong device.
    const size_t arrow = edge->first.find(" -> ");
    double back = 0;
    if (arrow != std::string::npos) {
      const auto way_back = edges.find(edge->first.substr(arrow + 4) + " -> " +
                                       edge->first.substr(0, arrow));
      if (way_back != edges.end()) back = way_back->second;
    }
    add(fmt::format("Keep producer and reader on one device: copies {}{}",
                    edge->first, back > 0 ? " and back" : ""),
        longest->line,
        fmt::format("copies on the critical path: {:.0f} us{}; the ops are "
                    "taken to be as fast on the other device",
                    edge->second,
                    back > 0 ? fmt::format(" + {:.0f} us back", back) : ""),
        edge->second + back);
  }

  // Devices with the same kinds of ops, as replicas have, and unequal times.
  void shares() {
    std::map<std::string, std::map<std::string, int64_t>> kinds;
    for (const OpSummary& row : a_.ops) {
      if (!row.is_transfer && row.count > 0) kinds[row.device][row.kind]++;
    }
    std::map<std::string, double> busy;
    for (const DeviceTime& d : a_.devices) busy[d.name] = d.busy_us / steps_;
    const DeviceTime* slowest = nullptr;
    for (const DeviceTime& d : a_.devices) {
      if (slowest == nullptr || d.busy_us > slowest->busy_us) slowest = &d;
    }
    double speeds = 0, most = 0;
    int alike = 0;
    for (const DeviceTime& d : a_.devices) {
      if (busy[d.name] <= 0 || kinds[d.name] != kinds[slowest->name]) continue;
      ++alike;
      speeds += 1 / busy[d.name];
      most = std::max(most, busy[d.name]);
    }
    if (alike < 2) return;
    const double even = alike / speeds;
    const bool shares_a_task = slowest->name.find(' ') == std::string::npos;
    add(fmt::format("Give {} a smaller share of the batch: {}", slowest->name,
                    shares_a_task ? "`.shares`" : "its task is a straggler"),
        "",
        fmt::format("slowest {:.0f} us - {} devices / sum of their speeds "
                    "{:.0f} us",
                    most, alike, even),
        most - even);
  }

  void tiny_ops() {
    std::map<std::string, double> launch;
    for (const DeviceRoof& r : a_.roofs) launch[r.device] = r.launch_us;
    double gain = 0, most = 0;
    int64_t count = 0, left = 0;
    std::string line;
    bool eager = false;
    std::vector<char> in_row(x_.tracks.size(), 0);
    for (size_t e = 0; e < x_.events.size(); ++e) {
      if (x_.step[e] < 0 || !x_.is_work(static_cast<int32_t>(e))) continue;
      const OpSummary& row = a_.ops[x_.op[e]];
      char& before = in_row[x_.track[e]];
      const bool tiny = row.limit == OpLimit::kLaunch;
      if (tiny && before) {
        gain += launch[row.device] / steps_;
        if (row.total_us > most) {
          most = row.total_us;
          line = row.line;
        }
      }
      count += tiny;
      left += tiny && !before;
      eager |= tiny && row.device.ends_with("eager ops");
      before = tiny;
    }
    if (count == 0) return;
    add(eager
            ? "Put the eager ops into a function: they are fused and launched "
              "at once"
            : "Tiny ops: fuse neighbours, or take a larger batch",
        line,
        fmt::format(
            "({:.0f} - {:.0f}) launches per step x the time between two "
            "ops",
            static_cast<double>(count) / steps_,
            static_cast<double>(left) / steps_),
        gain);
  }

  void sums() {
    const double exposed = a_.sums.exposed_us() / steps_;
    if (exposed <= 0) return;
    double compute = 0;
    for (const DeviceTime& d : a_.devices) {
      compute = std::max(compute, d.busy_us / steps_);
    }
    const double all = a_.sums.total_us / steps_;
    const double gain = exposed - std::max(0.0, all - compute / 2);
    std::string line;
    for (const OpSummary& row : a_.ops) {
      if (row.kind == "sum" && line.empty()) line = row.line;
    }
    add("Sum gradients while the backward pass runs: smaller buckets", line,
        fmt::format("exposed {:.0f} us - max(0, sums {:.0f} us - half of the "
                    "compute {:.0f} us)",
                    exposed, all, compute),
        gain);
  }

  void memory_bound() {
    double us = 0, most = 0;
    std::string line;
    for (const OpSummary& row : a_.ops) {
      const bool out_of_cache = row.bytes >= 4 << 20;
      if (row.limit != OpLimit::kMemory || !out_of_cache) continue;
      us += row.critical_us;
      if (row.critical_us <= most) continue;
      most = row.critical_us;
      line = row.line;
    }
    if (us <= 0) return;
    add("Ops that memory bounds: compute in bfloat16 (mixed precision)", line,
        fmt::format("half of {:.0f} us that they take on the critical path",
                    us),
        us / 2);
  }

  const EventIndex& x_;
  const Analysis& a_;
  const double steps_;
  std::vector<Advice> found_;
};

}  // namespace

std::vector<Advice> advice_for(const EventIndex& x, const Analysis& a) {
  return Adviser(x, a).all();
}

}  // namespace berth::profiler
