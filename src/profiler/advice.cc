// Advice: what to change, and how much shorter a step becomes.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "profiler/busy.h"

namespace berth::profiler {

namespace {

constexpr double kLeastShare = 0.03;
constexpr double kRowUs = 100;  // eager ops later than that are not in a row
constexpr double kCallUs = 5;   // of the host, for a call of a function

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

  // With a batch in reserve a step waits for what the slowest stage takes
  // longer than the rest of the step; with two calls at once, half of it.
  void input() {
    const double wait = a_.input_us;
    if (wait <= 0) return;
    const double rest = std::max(0.0, a_.step_us - wait);
    bool prefetches = false;
    const InputStageUse* slow = nullptr;
    for (const InputStageUse& s : a_.stages) {
      if (is_prefetch(s.name)) {
        prefetches = true;
      } else if (slow == nullptr) {
        slow = &s;
      }
    }
    const std::string line = slow != nullptr ? slow->line : "";
    const double stage = slow != nullptr ? slow->own_us / steps_ : wait;
    const auto advise = [&](const std::string& title, int calls) {
      add(title, line,
          fmt::format("wait {:.0f} us - max(0, stage {:.0f} us / {} - rest of "
                      "the step {:.0f} us)",
                      wait, stage, calls, rest),
          wait - std::max(0.0, stage / calls - rest));
    };
    const std::string end = prefetches ? "" : ", then prefetch";
    if (!prefetches) {
      advise(
          "Prepare batches while the step runs: end the pipeline with "
          "prefetch",
          1);
    }
    if (slow != nullptr && (prefetches || stage > rest)) {
      advise(fmt::format("Run the input stage \"{}\" in two calls at once "
                         "(num_parallel_calls){}",
                         slow->name, end),
             2);
    }
  }

  // The edge that is longest on the critical path, with the op that reads it.
  void transfers() {
    std::map<std::string, double> edges;
    const OpSummary* longest = nullptr;
    for (const OpSummary& row : a_.ops) {
      if (row.kind != "copy" || row.critical_us <= 0) continue;
      edges[row.detail] += row.critical_us;
      if (longest == nullptr || line_rank(row) > line_rank(*longest)) {
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

  // The line of a copy is its producer's: that on the device which computes
  // less is the one to move.
  std::tuple<bool, bool, double> line_rank(const OpSummary& copy) const {
    const size_t arrow = copy.detail.find(" -> ");
    double from = 0, to = 0;
    for (const DeviceTime& d : a_.devices) {
      if (copy.detail.substr(0, arrow) == d.name) from = d.busy_us;
      if (copy.device == d.name) to = d.busy_us;
    }
    return {!copy.line.empty(), from < to, copy.critical_us};
  }

  // Devices with the same kinds of ops, as replicas have, and unequal times.
  // Updates of variables take as long whatever the share of the batch.
  void shares() {
    std::map<std::string, std::map<std::string, int64_t>> kinds;
    std::map<std::string, double> fixed;
    for (const OpSummary& row : a_.ops) {
      if (row.is_transfer || row.count == 0) continue;
      ++kinds[row.device][row.kind];
      if (row.kind.starts_with("Resource") || row.kind.starts_with("Assign")) {
        fixed[row.device] += row.total_us / steps_;
      }
    }
    const DeviceTime* slowest = nullptr;
    for (const DeviceTime& d : a_.devices) {
      if (slowest == nullptr || d.busy_us > slowest->busy_us) slowest = &d;
    }
    if (slowest == nullptr) return;
    double speeds = 0, most_fixed = 0;
    int alike = 0;
    for (const DeviceTime& d : a_.devices) {
      const double us = d.busy_us / steps_ - fixed[d.name];
      if (us <= 0 || !are_alike(kinds[d.name], kinds[slowest->name])) continue;
      ++alike;
      speeds += 1 / us;
      most_fixed = std::max(most_fixed, fixed[d.name]);
    }
    if (alike < 2) return;
    const double even = alike / speeds + most_fixed;
    const double most = slowest->busy_us / steps_;
    const bool shares_a_task = slowest->name.find(' ') == std::string::npos;
    add(fmt::format("Give {} a smaller share of the batch: {}", slowest->name,
                    shares_a_task ? "`.shares`" : "its task is a straggler"),
        line_of_longest(slowest->name),
        fmt::format("slowest {:.0f} us - ({} devices / sum of their speeds "
                    "+ updates of variables {:.0f} us)",
                    most, alike, most_fixed),
        most - even);
  }

  // One has a metric or two more.
  static bool are_alike(const std::map<std::string, int64_t>& a,
                        const std::map<std::string, int64_t>& b) {
    int64_t both = 0, all = 0;
    for (const auto& [kind, n] : a) {
      const auto other = b.find(kind);
      both += std::min(n, other == b.end() ? 0 : other->second);
      all += n;
    }
    for (const auto& [kind, n] : b) all += n;
    return 2 * both * 10 >= all * 8;
  }

  std::string line_of_longest(const std::string& device) const {
    const OpSummary* longest = nullptr;
    for (const OpSummary& row : a_.ops) {
      if (row.device != device || row.line.empty()) continue;
      if (longest == nullptr || row.total_us > longest->total_us) {
        longest = &row;
      }
    }
    return longest == nullptr ? "" : longest->line;
  }

  // Ops in a row on one device could be one: launching the others is saved.
  // Eager ops would save all that the host does for them.
  void tiny_ops() {
    std::map<std::string, double> launch;
    for (const DeviceRoof& r : a_.roofs) launch[r.device] = r.launch_us;
    double gain = 0, most = 0;
    int64_t count = 0, left = 0;
    std::string line;
    bool eager = false;
    std::vector<int32_t> before(x_.tracks.size(), -1);  // tiny, by track
    for (size_t e = 0; e < x_.events.size(); ++e) {
      if (x_.step[e] < 0 || !x_.is_work(static_cast<int32_t>(e))) continue;
      const OpSummary& row = a_.ops[x_.op[e]];
      int32_t& last = before[x_.track[e]];
      const bool is_eager = row.device.ends_with("eager ops");
      const bool tiny = is_eager || row.limit == OpLimit::kLaunch;
      const bool is_late =
          is_eager && last >= 0 &&
          x_.events[e].begin_us > x_.events[last].end_us + kRowUs;
      if (tiny && last >= 0 && !is_late && x_.step[last] == x_.step[e]) {
        const TimelineEvent &now = x_.events[e], &then = x_.events[last];
        gain +=
            (is_eager ? now.end_us - then.end_us : launch[row.device]) / steps_;
        if (row.total_us > most) {
          most = row.total_us;
          line = row.line;
        }
      } else {
        left += tiny;
      }
      count += tiny;
      eager |= is_eager;
      last = tiny ? static_cast<int32_t>(e) : -1;
    }
    if (count == 0) return;
    // The typical step, not the mean one; the function has to be called.
    double all = 0;
    for (const auto& [begin, end] : a_.step_spans) all += end - begin;
    gain *= a_.step_us * steps_ / all;
    if (eager) gain -= kCallUs;
    add(eager
            ? "Put the eager ops into a function: they are fused and launched "
              "at once"
            : "Tiny ops: fuse neighbours, or take a larger batch",
        line,
        fmt::format("({:.0f} - {:.0f}) ops per step x {}",
                    static_cast<double>(count) / steps_,
                    static_cast<double>(left) / steps_,
                    eager ? "the time from the end of one to the end of the "
                            "next - 5 us for the call"
                          : "the time between two ops"),
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
