#include "distribute/search/search_plans.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "distribute/pipeline/schedule.h"
#include "distribute/search/chain_costs.h"

namespace berth::distribute {

namespace {

constexpr int kSlices = 32;  // of batches, for unequal shares
constexpr size_t kFew = 4;   // devices whose orders are all tried
constexpr int kFirst = 4;    // pipelines of a kind
constexpr double kNear = 2;  // bytes over a limit that predictions may be off
constexpr int kMostStages = 32, kImproved = 8;  // of many devices
constexpr size_t kMany = 16;  // devices whose numbers are not all tried
constexpr int64_t kTypical = 1 << 20;  // bytes of a copy

using Devices = std::vector<int>;

class Search {
 public:
  Search(const ModelChain& chain, const SearchLimits& limits)
      : chain_(chain), limits_(limits) {}

  SearchResult run() {
    const auto n = static_cast<int>(chain_.machine.devices.size());
    for (ParallelCandidate c : limits_.built) {
      find_too_small(chain_, c);
      if (c.fits() && allowed(c)) bounds_.push_back(c.step_us);
      keep(c);
    }
    for (int d = 0; d < n; ++d) consider({.devices = {d}});
    const std::vector<Devices> all = orders();
    for (const bool stages : {false, true}) {
      for (const Devices& order : all) {
        for (const int k : counts(n)) {
          use({order.begin(), order.begin() + k}, stages);
        }
      }
    }
    finish_pipelines();
    SearchResult result;
    for (const auto& [kind, c] : best_) result.best.push_back(c);
    std::stable_sort(result.best.begin(), result.best.end(),
                     [&](const auto& a, const auto& b) { return less(a, b); });
    for (const auto& [kind, c] : near_) {
      const ParallelCandidate& first = result.best.front();
      if (!first.fits() || c.step_us < first.step_us) result.near.push_back(c);
    }
    result.candidates = candidates_;
    result.estimates = estimates_;
    result.bound_us = result.best.front().step_us;
    for (const double b : bounds_) {
      result.bound_us = std::min(result.bound_us, b);
    }
    return result;
  }

 private:
  bool allowed(const ParallelCandidate& c) const {
    return limits_.most_copies == 0 || c.copies <= limits_.most_copies;
  }

  // How far a candidate exceeds what its devices have.
  double excess(const ParallelCandidate& c) const {
    if (c.fits()) return 0;
    const auto d = static_cast<size_t>(c.too_small);
    const int64_t limit =
        chain_.machine.devices[static_cast<size_t>(c.devices[d])].memory_limit;
    return static_cast<double>(c.peak_bytes[d]) / static_cast<double>(limit);
  }
  bool less(const ParallelCandidate& a, const ParallelCandidate& b) const {
    return std::pair(excess(a), a.step_us) < std::pair(excess(b), b.step_us);
  }

  // How many devices to use: of many, powers of two and what halving gives.
  static std::vector<int> counts(int n) {
    std::set<int> all;
    const bool many = n > static_cast<int>(kMany);
    for (int k = n; k > 1; many ? k /= 2 : --k) all.insert(k);
    for (int k = 2; k < n; k *= 2) all.insert(k);
    return {all.rbegin(), all.rend()};
  }

  double link_us(int from, int to) const {
    return chain_.machine.link(from, to).time_us(kTypical);
  }

  // Devices as given, the fastest first, the largest first and, of a few
  // devices, every order of different ones.
  std::vector<Devices> orders() const {
    const auto& devices = chain_.machine.devices;
    Devices given(devices.size());
    std::iota(given.begin(), given.end(), 0);
    std::vector<double> us(devices.size(), 0);
    for (const ChainLayer& l : chain_.layers) {
      for (size_t d = 0; d < us.size(); ++d) {
        us[d] += l.forward[d].example_us + l.input[d].example_us +
                 l.weight[d].example_us;
      }
    }
    const auto limit = [&](int d) {
      const int64_t bytes = devices[static_cast<size_t>(d)].memory_limit;
      return bytes > 0 ? bytes : std::numeric_limits<int64_t>::max();
    };
    Devices fast = given, large = given;
    std::stable_sort(fast.begin(), fast.end(),
                     [&](int a, int b) { return us[a] < us[b]; });
    std::stable_sort(large.begin(), large.end(),
                     [&](int a, int b) { return limit(a) > limit(b); });
    std::vector<Devices> all;
    std::set<std::vector<std::tuple<double, int64_t, double>>> seen;
    const auto add = [&](const Devices& order) {
      std::vector<std::tuple<double, int64_t, double>> what;
      int before = order.back();
      for (const int d : order) {
        what.emplace_back(us[d], limit(d), link_us(before, d));
        before = d;
      }
      if (seen.insert(what).second) all.push_back(order);
    };
    for (const Devices& d : {given, fast, large}) add(d);
    Devices any = given;
    while (given.size() <= kFew &&
           std::next_permutation(any.begin(), any.end())) {
      add(any);
    }
    return all;
  }

  // Every way to use just these devices, with stages or without.
  void use(const Devices& devices, bool stages) {
    const auto n = static_cast<int>(devices.size());
    if (stages && !limits_.pipelines) return;
    if (stages) use_pipelines(devices, -1, 1);
    if (!stages && limits_.replicas) use_replicas(devices, -1, 1);
    for (size_t s = 0; s < chain_.splits.size() && limits_.tensor; ++s) {
      const int parts = chain_.splits[s].parts;
      if (parts < 2 || n % parts != 0) continue;
      if (!stages) use_replicas(devices, static_cast<int>(s), parts);
      if (stages && n > parts) {
        use_pipelines(devices, static_cast<int>(s), parts);
      }
    }
  }

  void use_replicas(const Devices& devices, int split, int parts) {
    ParallelCandidate c{.kind = split < 0 ? ParallelKind::kMirrored
                                          : ParallelKind::kModelParallel,
                        .devices = devices,
                        .split = split,
                        .parts = parts};
    if (c.groups() > chain_.batch) return;
    consider(c);
    if (split >= 0) return;
    const std::vector<std::vector<int>> shares = good_shares(c);
    for (const std::vector<int>& s : shares) {
      c.shares = s;
      consider(c);
    }
    if (!limits_.sharding || !memories_apart(devices)) return;
    c.kind = ParallelKind::kSharded;
    for (const Sharding level :
         {Sharding::kOptimizer, Sharding::kGradients, Sharding::kParameters}) {
      c.sharding = level;
      c.shares = {};
      consider(c);
      for (const std::vector<int>& s : shares) {
        c.shares = s;
        consider(c);
      }
    }
  }

  // CPU devices share one memory.
  bool memories_apart(const Devices& devices) const {
    return std::none_of(devices.begin(), devices.end(), [&](int d) {
      const std::string& name =
          chain_.machine.devices[static_cast<size_t>(d)].name;
      return name.find("device:CPU") != std::string::npos;
    });
  }

  // By speed; then as many to each as fit, the others to where there is room.
  std::vector<std::vector<int>> good_shares(ParallelCandidate c) const {
    const ChainCosts costs(chain_, c);
    const auto n = static_cast<size_t>(c.groups());
    if (chain_.batch < kSlices || n > kSlices) return {};
    std::vector<int> shares(n, 1);
    std::vector<double> us(n, 0);
    for (size_t g = 0; g < n; ++g) {
      for (size_t k = 0; k < chain_.layers.size(); ++k) {
        const LayerTimes t = costs.layer(static_cast<int>(g), k, 1);
        const LayerTimes none = costs.layer(static_cast<int>(g), k, 0);
        us[g] += t.forward_us + t.input_us + t.weight_us - none.forward_us -
                 none.input_us - none.weight_us;
      }
    }
    const double slice =
        static_cast<double>(chain_.batch) / static_cast<double>(kSlices);
    const auto room = [&](size_t g, int slices) {
      std::vector<double> rows(n, 0);
      rows[g] = slices * slice;
      const int64_t limit = costs.limit(static_cast<size_t>(c.devices[g]));
      return limit == 0 || costs.bytes_of_replicas(rows)[g] <= limit;
    };
    std::vector<std::vector<int>> all;
    for (const bool limited : {false, true}) {
      std::fill(shares.begin(), shares.end(), 1);
      for (int left = kSlices - static_cast<int>(n); left > 0; --left) {
        size_t to = n;
        for (size_t g = 0; g < n; ++g) {
          if (limited && !room(g, shares[g] + 1)) continue;
          if (to == n || us[g] * (shares[g] + 1) < us[to] * (shares[to] + 1)) {
            to = g;
          }
        }
        if (to == n) return all;
        ++shares[to];
      }
      const bool equal = std::all_of(shares.begin(), shares.end(),
                                     [&](int s) { return s == shares[0]; });
      if (!equal && (all.empty() || all[0] != shares)) all.push_back(shares);
    }
    return all;
  }

  // Micro-batches: powers of two, and such multiples of the stages.
  std::set<int> micro_batches(int stages) const {
    const int64_t most =
        std::min<int64_t>(limits_.most_micro_batches, chain_.batch);
    std::set<int> counts;
    for (int64_t m = 2; m <= most; m *= 2) counts.insert(static_cast<int>(m));
    for (int64_t m = stages; m <= most; m *= 2) {
      counts.insert(static_cast<int>(m));
    }
    return counts;
  }

  void use_pipelines(const Devices& devices, int split, int parts) {
    using enum PipelineSchedule;
    ParallelCandidate c{.kind = split < 0 ? ParallelKind::kPipeline
                                          : ParallelKind::kPipelineOfLayers,
                        .devices = devices,
                        .split = split,
                        .parts = parts};
    const int p = c.groups();
    if (chain_.layers.size() < static_cast<size_t>(p)) return;
    if (many() && p > kMostStages) return;
    const std::string type = type_of(devices[0]);
    const bool one = std::all_of(devices.begin(), devices.end(),
                                 [&](int d) { return type_of(d) == type; });
    if (!one) return;  // PipelineStrategy needs devices of one type
    const auto batch = static_cast<double>(chain_.batch);
    const PassTime least = least_work(c, true), through = least_work(c, false);
    for (const int m : micro_batches(p)) {
      for (const PipelineSchedule s :
           {kGPipe, k1F1B, kInterleaved1F1B, kZbH1, kZbV}) {
        if (s == kInterleaved1F1B && m % p != 0) continue;
        c.schedule = s;
        c.micro_batches = m;
        // What all do, and what one micro-batch waits for.
        const double work =
            least.fixed_us * m + least.of(batch) - least.fixed_us;
        c.bound_us = chain_.took_over_predicted[static_cast<size_t>(c.kind)] *
                     std::max(work / p, through.of(batch / m));
        cut(c);
      }
    }
  }

  std::string type_of(int d) const {
    const std::string& name =
        chain_.machine.devices[static_cast<size_t>(d)].name;
    const size_t at = name.rfind("device:");
    return name.substr(at, name.rfind(':') - at);
  }

  bool many() const { return chain_.machine.devices.size() > kMany; }

  // What a micro-batch takes at least, on all stages together, with what only
  // updates wait for or without. Times are maxima of lines: no less than the
  // line through the first two examples.
  PassTime least_work(const ParallelCandidate& c, bool weights) const {
    const ChainCosts costs(chain_, c);
    const auto all = [&](double rows) {
      const ChainCosts::Least sums = costs.least(rows);
      return sums.forward.back() + sums.input.back() +
             (weights ? sums.weight.back() : 0);
    };
    const double fixed = all(0);
    return {fixed, all(1) - fixed};
  }

  // Finds borders of the stages that balance them, unless they cannot be the
  // best of their kind; of many devices, the best of all.
  void cut(ParallelCandidate& c) {
    const ChainCosts costs(chain_, c);
    const auto stages = static_cast<size_t>(costs.shape().stages);
    if (chain_.layers.size() < stages) return;
    ++candidates_;
    const auto known = best_.find(c.kind);
    if (known != best_.end() && known->second.fits() &&
        c.bound_us >= (many() ? *best() : known->second).step_us) {
      add_bound(c, c.bound_us);
      return;
    }
    c.begin = balanced_cut(costs.unit_costs(), costs.stages_on()).begin;
    price(c);
    keep(c);
    if (allowed(c)) pipelines_.push_back(c);
  }

  const ParallelCandidate* best() const {
    const ParallelCandidate* found = nullptr;
    for (const auto& [kind, c] : best_) {
      if (c.fits() && (!found || c.step_us < found->step_us)) found = &c;
    }
    return found;
  }

  // Moves the borders of pipelines that may become the best, or are the first
  // of their kind; bounds are not looked for beyond the best.
  void finish_pipelines() {
    std::stable_sort(pipelines_.begin(), pipelines_.end(),
                     [&](const auto& a, const auto& b) { return less(a, b); });
    std::map<ParallelKind, int> seen;
    for (ParallelCandidate& c : pipelines_) {
      const ParallelCandidate* fastest = best();
      const double enough = fastest ? fastest->step_us : kImpossible;
      if (c.bound_us < enough) {
        const double least = c.bound_us;
        const bool dear = many() && c.schedule == PipelineSchedule::kZbV;
        c.bound_us = !fastest ? 0 : dear ? least : bound_of(chain_, c, enough);
        if (c.bound_us > 0) c.bound_us = std::max(c.bound_us, least);
      }
      const int number = seen[c.kind]++;
      const bool may_win =
          fastest && c.bound_us < enough && (!many() || number < kImproved);
      if (number < kFirst || may_win) {
        improve(c);
        keep(c);
      }
      if (c.bound_us > 0 || c.fits()) {
        add_bound(c, c.bound_us > 0 ? c.bound_us : c.step_us);
      }
    }
  }

  // Moves borders while that makes the step faster, or fit better.
  void improve(ParallelCandidate& c) {
    bool better = true;
    for (int turn = 0; better && turn < 16; ++turn) {
      better = false;
      for (size_t s = 1; s < c.begin.size(); ++s) {
        for (const int by : {-1, 1}) {
          ParallelCandidate moved = c;
          moved.begin[s] += by;
          const int32_t end = s + 1 < c.begin.size()
                                  ? c.begin[s + 1]
                                  : static_cast<int32_t>(chain_.layers.size());
          if (moved.begin[s] <= c.begin[s - 1] || moved.begin[s] >= end) {
            continue;
          }
          price(moved);
          if (!less(moved, c)) continue;
          c = std::move(moved);
          better = true;
        }
      }
    }
  }

  void consider(ParallelCandidate c) {
    ++candidates_;
    price(c);
    c.bound_us = c.step_us;
    if (c.fits() && allowed(c) && !known(c)) add_bound(c, c.step_us);
    keep(c);
  }

  // Times are scaled by the last plan of their kind that was built; others may
  // be as much faster as any was.
  void add_bound(const ParallelCandidate& c, double us) {
    const auto kind = static_cast<size_t>(c.kind);
    bounds_.push_back(us * chain_.least_over_predicted[kind] /
                      chain_.took_over_predicted[kind]);
  }

  // What was built like it; null: nothing.
  const ParallelCandidate* known(const ParallelCandidate& c) const {
    for (const ParallelCandidate& b : limits_.built) {
      if (b.is_as(c)) return &b;
    }
    return nullptr;
  }

  void price(ParallelCandidate& c) {
    if (const ParallelCandidate* b = known(c)) {
      const double bound_us = c.bound_us;
      c = *b;
      c.bound_us = bound_us;
      return find_too_small(chain_, c);
    }
    ++estimates_;
    estimate(chain_, c);
  }

  void keep(const ParallelCandidate& c) {
    if (!allowed(c)) return;
    if (!c.fits() && excess(c) <= kNear) {
      const auto [it, fresh] = near_.try_emplace(c.kind, c);
      if (!fresh && c.step_us < it->second.step_us) it->second = c;
    }
    const auto [it, fresh] = best_.try_emplace(c.kind, c);
    if (!fresh && less(c, it->second)) it->second = c;
  }

  const ModelChain& chain_;
  const SearchLimits& limits_;
  std::map<ParallelKind, ParallelCandidate> best_, near_;
  std::vector<ParallelCandidate> pipelines_;
  std::vector<double> bounds_;  // of combinations that may fit
  int candidates_ = 0;
  int64_t estimates_ = 0;
};

}  // namespace

bool ParallelCandidate::is_as(const ParallelCandidate& o) const {
  const auto what = [](const ParallelCandidate& c) {
    return std::tie(c.kind, c.devices, c.split, c.parts, c.sharding, c.shares,
                    c.schedule, c.micro_batches, c.begin);
  };
  return what(*this) == what(o);
}

SearchResult search_plans(const ModelChain& chain, const SearchLimits& limits) {
  return Search(chain, limits).run();
}

}  // namespace berth::distribute
