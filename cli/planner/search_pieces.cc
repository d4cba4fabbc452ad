// The search of the third model: the bound's solution along a path and chains
// over many orders, then annealing from the best of them and of given plans.

#include <algorithm>
#include <bit>
#include <cmath>

#include "cli/planner/anneal_pieces.h"
#include "cli/planner/formats.h"
#include "cli/planner/path_pieces.h"

namespace berth {

namespace {

// Shares of the budget at which paths and chains end.
constexpr double kPaths = 0.06, kChains = 0.3;
constexpr int64_t kMovesOfBestCut = 10;  // moves for the cut of a piece
constexpr size_t kLongestPath = 1000;    // for an exact solution
constexpr int64_t kMovesOfChain = 500;   // moves for one order
constexpr size_t kStarts = 2;
constexpr int kPieceRounds = 2;  // few and long: short ones end in valleys

struct Searched {
  PiecesPlan best;
  int64_t moves = 0;
};

class Stream {
 public:
  Stream(const PlanProblem& problem, const PiecesProblem& p,
         const Budget& budget, uint64_t seed, int stream)
      : problem_(problem),
        p_(p),
        budget_(budget),
        stream_(stream),
        random_(seed, static_cast<uint64_t>(stream)),
        chain_(p),
        anneal_(p, chain_) {}

  Searched run() {
    add_candidates();
    add_path();
    for (int round = 0; round == 0 || budget_.spent(moves_) < kChains;
         ++round) {
      add_chain();
      if (done()) break;
    }
    std::sort(starts_.begin(), starts_.end(),
              [](const PiecesPlan& a, const PiecesPlan& b) {
                return a.value < b.value;
              });
    for (int round = 0; round < kPieceRounds && !done(); ++round)
      improve(round);
    return {anneal_.best(), moves_};
  }

 private:
  bool done() const {
    return budget_.spent(moves_) >= 1 || budget_.enough(anneal_.best().value);
  }

  void add_start(const std::vector<int32_t>& device) {
    const double value = anneal_.start(device);
    for (const PiecesPlan& s : starts_) {
      if (s.value == value) return;
    }
    starts_.push_back({device, value});
    if (starts_.size() <= kStarts) return;
    starts_.erase(
        std::max_element(starts_.begin(), starts_.end(),
                         [](const PiecesPlan& a, const PiecesPlan& b) {
                           return a.value < b.value;
                         }));
  }

  void add_candidates() {
    for (const PlanCandidate& c : problem_.candidates) {
      std::vector<int32_t> device(static_cast<size_t>(p_.num_groups), 0);
      for (size_t i = 0; i < c.plan.device.size(); ++i) {
        device[static_cast<size_t>(problem_.group[i])] = c.plan.device[i];
      }
      add_start(device);
    }
    std::vector<int32_t> first;
    for (const DeviceSet& mask : p_.allowed) {
      first.push_back(mask ? mask.first() : 0);
    }
    add_start(first);
  }

  // Adds the bound's cheapest solution along a path as a start.
  void add_path() {
    PathPieces paths(p_);
    std::vector<double> weight;
    for (int32_t v = 0; v < p_.num_ops; ++v) {
      weight.push_back(paths.weight(v, stream_));
    }
    const std::vector<int32_t> path = paths.longest(weight);
    if (path.size() > kLongestPath) return;
    const double value = paths.least(path, [&] {
      moves_ += kMovesOfBestCut;
      return budget_.spent(moves_) < kPaths;
    });
    if (std::isfinite(value)) add_start(fill(paths.cheapest_pieces()));
  }

  // Puts each piece on the device with the most free memory; the rest on CPUs.
  std::vector<int32_t> fill(const std::vector<std::vector<int32_t>>& pieces) {
    std::vector<int32_t> device(static_cast<size_t>(p_.num_groups), -1);
    std::vector<double> room = p_.limit;
    int32_t before = -1;  // a neighbour there would merge with it
    for (const std::vector<int32_t>& ops : pieces) {
      double bytes = 0;
      std::vector<int32_t> groups;
      DeviceSet mask = ~DeviceSet{0};
      for (const int32_t v : ops) {
        const int32_t g = p_.group[static_cast<size_t>(v)];
        int32_t& d = device[static_cast<size_t>(g)];
        if (d != -1) continue;
        d = -2;  // taken
        groups.push_back(g);
        mask &= p_.allowed[static_cast<size_t>(g)];
        bytes += p_.group_bytes[static_cast<size_t>(g)];
      }
      int32_t on = -1;
      for (int32_t d = 0; d < p_.num_devices; ++d) {
        const auto at = static_cast<size_t>(d);
        if (p_.is_cpu[at] || !mask.has(d) || d == before) continue;
        if (on < 0 || room[at] > room[static_cast<size_t>(on)]) on = d;
      }
      before = on;
      if (on >= 0) room[static_cast<size_t>(on)] -= bytes;
      for (const int32_t g : groups) device[static_cast<size_t>(g)] = on;
    }
    for (int32_t g = 0; g < p_.num_groups; ++g) {
      int32_t& d = device[static_cast<size_t>(g)];
      if (d < 0) d = home(p_.allowed[static_cast<size_t>(g)]);
    }
    return device;
  }

  // Returns a CPU of the mask, else any device of it.
  int32_t home(DeviceSet mask) const {
    for (int32_t d = 0; d < p_.num_devices; ++d) {
      if (p_.is_cpu[static_cast<size_t>(d)] && mask.has(d)) return d;
    }
    return mask ? mask.first() : 0;
  }

  void add_chain() {
    std::vector<int32_t> devices;
    for (int32_t d = 0; d < p_.num_devices; ++d) {
      if (!p_.is_cpu[static_cast<size_t>(d)]) devices.push_back(d);
    }
    for (size_t k = devices.size(); k > 1; --k) {
      std::swap(devices[k - 1],
                devices[random_.below(static_cast<uint32_t>(k))]);
    }
    // Every other time offers half of the accelerators twice, and then merges
    // pieces where there is memory.
    const size_t real = devices.size();
    const bool packed = random_.below(2) == 0;
    for (size_t k = 0; packed && k < real / 2; ++k) {
      devices.push_back(devices[k]);
    }
    moves_ += kMovesOfChain;
    const std::vector<int32_t> slot =
        chain_.best_plan(chain_.random_order(random_), devices);
    if (slot.empty()) return;
    std::vector<std::vector<int32_t>> pieces(devices.size());
    std::vector<int32_t> device;
    for (int32_t g = 0; g < p_.num_groups; ++g) {
      const int32_t s = slot[static_cast<size_t>(g)];
      device.push_back(s < 0 ? chain_.cpu_of(g)
                             : devices[static_cast<size_t>(s)]);
      if (s < 0) continue;
      const auto ops = p_.ops_of[g];
      std::vector<int32_t>& piece = pieces[static_cast<size_t>(s)];
      piece.insert(piece.end(), ops.begin(), ops.end());
    }
    add_start(packed ? fill(pieces) : device);
  }

  // Improves the best plan or another start, with less and less heat.
  void improve(int round) {
    const auto at = static_cast<size_t>(round);
    const bool fresh = at < starts_.size();
    if (fresh) {
      anneal_.start(starts_[at].device);
    } else if (!anneal_.best().device.empty()) {
      anneal_.start(anneal_.best().device);
    }
    const double begin = budget_.spent(moves_);
    const double end = begin + (1 - begin) / (kPieceRounds - round);
    const int64_t before = moves_;
    // One op of few is a larger share of the value than one of many.
    const double hot = std::clamp(6.0 / p_.num_groups, 0.03, 1.0);
    moves_ += anneal_.run(random_, fresh ? hot : hot / 3, [&](int64_t moves) {
      if (budget_.enough(anneal_.best().value)) return 1.0;
      const double now = budget_.spent(before + moves);
      return now >= 1 || end <= begin ? 1.0 : (now - begin) / (end - begin);
    });
  }

  const PlanProblem& problem_;
  const PiecesProblem& p_;
  const Budget& budget_;
  const int stream_;
  StreamRandom random_;
  PiecesChain chain_;
  PiecesAnneal anneal_;
  std::vector<PiecesPlan> starts_;
  int64_t moves_ = 0;
};

}  // namespace

Found search_pieces(const PlanProblem& problem, const Budget& budget,
                    uint64_t seed) {
  const PiecesProblem p(problem);
  std::vector<Searched> found(static_cast<size_t>(budget.num_streams()));
  run_streams(budget.num_streams(), budget.threads(), [&](int s) {
    found[static_cast<size_t>(s)] = Stream(problem, p, budget, seed, s).run();
  });
  Found best;
  const Searched* winner = nullptr;
  for (const Searched& s : found) {
    best.moves += s.moves;
    if (!winner || s.best.value < winner->best.value) winner = &s;
  }
  if (winner->best.device.empty()) return best;
  best.value = winner->best.value;
  for (const int32_t g : problem.group) {
    best.plan.device.push_back(winner->best.device[static_cast<size_t>(g)]);
  }
  best.plan.sequence = order_of_ops(problem);
  return best;
}

}  // namespace berth
