// The search of the third model: the bound's solution along a path and chains
// over many orders, then annealing from the best of them and of given plans.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/infinity.h"
#include "cli/planner/chain_pieces.h"
#include "cli/planner/path_pieces.h"
#include "cli/planner/pieces.h"
#include "place/planner/budget.h"

namespace berth {

namespace {

Rows<int32_t> neighbours_of(const PiecesProblem& p) {
  Rows<int32_t> rows;
  std::vector<int32_t> row;
  for (int32_t g = 0; g < p.num_groups; ++g) {
    row.clear();
    for (const int32_t v : p.ops_of[g]) {
      for (const int32_t u : p.inputs[v]) row.push_back(p.group[u]);
      for (const int32_t r : p.readers[v]) row.push_back(p.group[r]);
    }
    sort_unique(row);
    std::erase(row, g);
    rows.add(row);
  }
  return rows;
}

// A device per group, and its value; infinite: none keeps all limits.
struct PiecesPlan {
  std::vector<int32_t> device;
  double value = kInfinity;
};

// Annealing of plans, which may break limits on the way.
class PiecesAnneal {
 public:
  PiecesAnneal(const PiecesProblem& p, const PiecesChain& chain)
      : p_(p),
        chain_(chain),
        evaluator_(p),
        neighbours_(neighbours_of(p)),
        device_(static_cast<size_t>(p.num_groups)),
        on_(static_cast<size_t>(p.num_ops)),
        held_(static_cast<size_t>(p.num_devices)),
        seen_(static_cast<size_t>(p.num_groups), 0) {}

  // Starts from a plan, which may exceed memory limits. Returns its value, with
  // a penalty for that.
  double start(const std::vector<int32_t>& device) {
    device_ = device;
    std::fill(held_.begin(), held_.end(), 0);
    for (int32_t g = 0; g < p_.num_groups; ++g) {
      held_[device_[g]] += p_.group_bytes[g];
      put(g, device_[g]);
    }
    const double e = energy();
    keep_best();
    return e;
  }

  // Tries moves from there while spent(), called every few moves, is below 1.
  // That share of the budget also sets the temperature, from `hot` (a share of
  // the value) to a thousandth of it. Returns the moves tried.
  int64_t run(StreamRandom& random, double hot,
              const std::function<double(int64_t)>& spent) {
    const int64_t every = std::clamp(40'000 / (p_.num_ops + 1), 1, 64);
    double now = energy(), heat = 0;
    int64_t moves = 0;
    for (;; ++moves) {
      if (moves % every == 0) {
        const double share = spent(moves);
        if (share >= 1) break;
        if (moves % 1024 == 0) {
          order_.clear();
          for (const int32_t b : chain_.random_order(random)) {
            for (const int32_t g : chain_.blocks()[b]) order_.push_back(g);
          }
        }
        const double base = std::isfinite(now) ? now : best_.value;
        heat = (std::isfinite(base) ? base : 1) * hot * std::pow(1e-3, share);
      }
      if (!propose(random)) continue;
      // Drawn before the move is priced, so that each move makes one draw.
      const double stop = now - heat * std::log(random.uniform() + 1e-300);
      apply();
      const double then = energy();
      if (then <= stop) {
        now = then;
        keep_best();
      } else {
        undo();
      }
    }
    return moves;
  }

  // The best plan since construction.
  const PiecesPlan& best() const { return best_; }

 private:
  struct Change {
    int32_t group, device;
  };

  bool propose(StreamRandom& random) {
    changes_.clear();
    const uint32_t kind = random.below(17);
    const bool some = kind < 7    ? propose_cluster(random)
                      : kind < 14 ? propose_window(random)
                      : kind < 16 ? propose_piece(random)
                                  : propose_swap(random);
    return some && std::ranges::all_of(changes_, [&](const Change& c) {
             return p_.allowed[c.group].has(c.device);
           });
  }

  // Moves a few neighbours on one device to another device nearby.
  bool propose_cluster(StreamRandom& random) {
    const int32_t first = random.below(p_.num_groups);
    const int32_t from = device_[first];
    const size_t most = random_size(random);
    changes_.push_back({first, 0});
    seen_[first] = ++tried_;
    int32_t to = device_nearby(first, random);
    for (size_t k = 0; k < changes_.size() && changes_.size() < most; ++k) {
      for (const int32_t g : neighbours_[changes_[k].group]) {
        if (changes_.size() == most || seen_[g] == tried_) continue;
        seen_[g] = tried_;
        if (device_[g] != from) {
          if (to == from) to = device_[g];
          continue;
        }
        if (random.below(8) != 0) changes_.push_back({g, 0});
      }
    }
    for (Change& c : changes_) c.device = to;
    return to >= 0 && to != from;
  }

  // Moves a window of an order to the device at one of its ends.
  bool propose_window(StreamRandom& random) {
    const uint32_t n = order_.size();
    const uint32_t length = 1 + random.below(random_size(random));
    const uint32_t begin = random.below(n - length + 1);
    const bool before = random.below(2) == 0;
    const uint32_t at = before
                            ? (begin > 0 ? begin - 1 : begin + length)
                            : (begin + length < n ? begin + length : begin - 1);
    if (at >= n) return false;
    const int32_t to = random.below(12) == 0
                           ? device_nearby(order_[begin], random)
                           : device_[order_[at]];
    if (to < 0) return false;
    for (uint32_t k = begin; k < begin + length; ++k) {
      if (device_[order_[k]] != to) {
        changes_.push_back({order_[k], to});
      }
    }
    return !changes_.empty();
  }

  // Moves a connected set of groups from one device to another. Its cost
  // changes only where it meets others there, but memory is freed and used.
  bool propose_piece(StreamRandom& random) {
    const int32_t first = random.below(p_.num_groups);
    const int32_t from = device_[first];
    if (p_.is_cpu[from]) return false;
    const int32_t to = any_of(p_.allowed[first], random);
    if (to == from || to < 0) return false;
    changes_.push_back({first, to});
    seen_[first] = ++tried_;
    for (size_t k = 0; k < changes_.size(); ++k) {
      for (const int32_t g : neighbours_[changes_[k].group]) {
        if (device_[g] != from || seen_[g] == tried_) continue;
        seen_[g] = tried_;
        changes_.push_back({g, to});
      }
    }
    return true;
  }

  // Swaps the devices of two groups.
  bool propose_swap(StreamRandom& random) {
    const int32_t a = random.below(p_.num_groups);
    const int32_t b = random.below(p_.num_groups);
    changes_ = {{a, device_[b]}, {b, device_[a]}};
    return device_[a] != device_[b];
  }

  // Number of groups that move at once: a power of two up to 64 or a quarter of
  // all groups, each equally likely.
  uint32_t random_size(StreamRandom& random) const {
    const auto quarter = static_cast<uint32_t>(p_.num_groups) / 4 + 1;
    const uint32_t powers = std::bit_width(quarter);
    return 1u << random.below(std::min(powers, 7u));
  }

  // Returns a neighbour's device for the group, or sometimes any allowed one.
  int32_t device_nearby(int32_t group, StreamRandom& random) const {
    const DeviceSet mask = p_.allowed[group];
    const auto near = neighbours_[group];
    if (!near.empty() && random.below(6) != 0) {
      return device_[near[random.below(near.size())]];
    }
    return random.below(2) == 0 ? roomiest(mask) : any_of(mask, random);
  }

  // Returns a random device of a mask; -1: the mask is empty.
  int32_t any_of(DeviceSet mask, StreamRandom& random) const {
    if (mask == 0) return -1;
    uint32_t skip = random.below(mask.count());
    while (skip-- > 0) mask.drop_first();
    return mask.first();
  }

  // Returns the accelerator of a mask with the most free memory; -1: none.
  int32_t roomiest(DeviceSet mask) const {
    int32_t best = -1;
    for (; mask; mask.drop_first()) {
      const int32_t d = mask.first();
      if (p_.is_cpu[d]) continue;
      const auto room = [&](int32_t on) { return p_.limit[on] - held_[on]; };
      if (best < 0 || room(d) > room(best)) best = d;
    }
    return best;
  }

  void apply() {
    for (Change& c : changes_) {
      const int32_t was = device_[c.group];
      put(c.group, c.device);
      c.device = was;
    }
  }

  void undo() {
    for (const Change& c : changes_) put(c.group, c.device);
  }

  void put(int32_t group, int32_t device) {
    held_[device_[group]] -= p_.group_bytes[group];
    held_[device] += p_.group_bytes[group];
    device_[group] = device;
    for (const int32_t v : p_.ops_of[group]) on_[v] = device;
  }

  // Returns the value; bytes over the limits count as a time several times that
  // of everything.
  double energy() {
    value_ = evaluator_.value(on_);
    over_ = 0;
    for (size_t d = 0; d < held_.size(); ++d) {
      const double over = held_[d] - p_.limit[d];
      if (over > 0) over_ += over / p_.limit[d] + 1e-3;
    }
    return value_ * (1 + 4 * over_);
  }

  void keep_best() {
    if (over_ > 0 || value_ >= best_.value) return;
    best_.value = value_;
    best_.device = device_;
  }

  const PiecesProblem& p_;
  const PiecesChain& chain_;
  PiecesEvaluator evaluator_;
  Rows<int32_t> neighbours_;    // per group
  std::vector<int32_t> order_;  // groups, in a graph order

  std::vector<int32_t> device_;  // per group
  std::vector<int32_t> on_;      // per op
  std::vector<double> held_;     // bytes, per device
  std::vector<Change> changes_;  // of the move being tried
  std::vector<int32_t> seen_;    // per group: in the cluster of this move
  int32_t tried_ = 0;
  double value_ = 0, over_ = 0;  // of the last energy()
  PiecesPlan best_;
};

// Shares of the budget at which paths and chains end.
constexpr double kPaths = 0.06, kChains = 0.3;
constexpr int64_t kMovesOfBestCut = 10;  // moves for the cut of a piece
constexpr size_t kLongestPath = 1000;    // for an exact solution
constexpr int64_t kMovesOfChain = 500;   // moves for one order
constexpr size_t kStarts = 2;
constexpr int64_t kFirstMovesOfPieces = 16000;  // per stream
constexpr int kPieceRounds = 2;  // few and long: short ones end in valleys

class Stream {
 public:
  Stream(const PlanProblem& problem, const PiecesProblem& p,
         SearchStream& stream)
      : problem_(problem),
        p_(p),
        stream_(stream),
        random_(stream.random),
        chain_(p),
        anneal_(p, chain_) {}

  // One search of the series, from the best plan of all; empty: the first one.
  void run(const PiecesPlan& best) {
    starts_.clear();
    best.device.empty() ? add_candidates() : add_start(best.device);
    if (!has_path_) add_path();
    do {
      add_chain();
    } while (!done() && stream_.spent() < kChains);
    std::ranges::sort(starts_, {}, &PiecesPlan::value);
    for (int round = 0; round < kPieceRounds && !done(); ++round)
      improve(round);
  }

  const PiecesPlan& best() const { return anneal_.best(); }

 private:
  bool done() const {
    return stream_.spent() >= 1 || stream_.enough(anneal_.best().value);
  }

  void add_start(const std::vector<int32_t>& device) {
    const double value = anneal_.start(device);
    if (std::ranges::count(starts_, value, &PiecesPlan::value) > 0) return;
    starts_.push_back({device, value});
    if (starts_.size() <= kStarts) return;
    starts_.erase(std::ranges::max_element(starts_, {}, &PiecesPlan::value));
  }

  void add_candidates() {
    for (const PlanCandidate& c : problem_.candidates) {
      std::vector<int32_t> device(p_.num_groups, 0);
      for (size_t i = 0; i < c.plan.device.size(); ++i) {
        device[problem_.group[i]] = c.plan.device[i];
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
      weight.push_back(paths.weight(v, stream_.number()));
    }
    const std::vector<int32_t> path = paths.longest(weight);
    if (path.size() > kLongestPath) return;
    const double value = paths.least(path, [&] {
      stream_.take(kMovesOfBestCut);
      return stream_.spent() < kPaths;
    });
    has_path_ = std::isfinite(value);  // else there was no time
    if (has_path_) add_start(fill(paths.cheapest_pieces()));
  }

  // Puts each piece on the device with the most free memory; the rest on CPUs.
  std::vector<int32_t> fill(const std::vector<std::vector<int32_t>>& pieces) {
    std::vector<int32_t> device(p_.num_groups, -1);
    std::vector<double> room = p_.limit;
    int32_t before = -1;  // a neighbour there would merge with it
    for (const std::vector<int32_t>& ops : pieces) {
      double bytes = 0;
      std::vector<int32_t> groups;
      DeviceSet mask = ~DeviceSet{0};
      for (const int32_t v : ops) {
        const int32_t g = p_.group[v];
        int32_t& d = device[g];
        if (d != -1) continue;
        d = -2;  // taken
        groups.push_back(g);
        mask &= p_.allowed[g];
        bytes += p_.group_bytes[g];
      }
      int32_t on = -1;
      for (int32_t d = 0; d < p_.num_devices; ++d) {
        if (p_.is_cpu[d] || !mask.has(d) || d == before) continue;
        if (on < 0 || room[d] > room[on]) on = d;
      }
      before = on;
      if (on >= 0) room[on] -= bytes;
      for (const int32_t g : groups) device[g] = on;
    }
    for (int32_t g = 0; g < p_.num_groups; ++g) {
      int32_t& d = device[g];
      if (d < 0) d = home(p_.allowed[g]);
    }
    return device;
  }

  // Returns a CPU of the mask, else any device of it.
  int32_t home(DeviceSet mask) const {
    for (int32_t d = 0; d < p_.num_devices; ++d) {
      if (p_.is_cpu[d] && mask.has(d)) return d;
    }
    return mask ? mask.first() : 0;
  }

  void add_chain() {
    std::vector<int32_t> devices;
    for (int32_t d = 0; d < p_.num_devices; ++d) {
      if (!p_.is_cpu[d]) devices.push_back(d);
    }
    random_.shuffle(devices);
    // Every other time offers half of the accelerators twice, and then merges
    // pieces where there is memory.
    const size_t real = devices.size();
    const bool packed = random_.below(2) == 0;
    for (size_t k = 0; packed && k < real / 2; ++k) {
      devices.push_back(devices[k]);
    }
    stream_.take(kMovesOfChain);
    const std::vector<int32_t> slot =
        chain_.best_plan(chain_.random_order(random_), devices);
    if (slot.empty()) return;
    std::vector<std::vector<int32_t>> pieces(devices.size());
    std::vector<int32_t> device;
    for (int32_t g = 0; g < p_.num_groups; ++g) {
      const int32_t s = slot[g];
      device.push_back(s < 0 ? chain_.cpu_of(g) : devices[s]);
      if (s < 0) continue;
      const auto ops = p_.ops_of[g];
      std::vector<int32_t>& piece = pieces[s];
      piece.insert(piece.end(), ops.begin(), ops.end());
    }
    add_start(packed ? fill(pieces) : device);
  }

  // Improves the best plan or another start, with less and less heat.
  void improve(int round) {
    const size_t at = round;
    const bool fresh = at < starts_.size();
    if (fresh) {
      anneal_.start(starts_[at].device);
    } else if (!anneal_.best().device.empty()) {
      anneal_.start(anneal_.best().device);
    }
    const double begin = stream_.spent();
    const double end = begin + (1 - begin) / (kPieceRounds - round);
    // One op of few is a larger share of the value than one of many.
    const double hot = std::clamp(6.0 / p_.num_groups, 0.03, 1.0);
    const auto share = [&](int64_t moves) {
      const double now = stream_.spent(moves);
      const bool over = now >= 1 || stream_.enough(anneal_.best().value);
      return over ? 1.0 : (now - begin) / (end - begin);
    };
    stream_.take(anneal_.run(random_, fresh ? hot : hot / 3, share));
  }

  const PlanProblem& problem_;
  const PiecesProblem& p_;
  SearchStream& stream_;
  StreamRandom& random_;
  PiecesChain chain_;
  PiecesAnneal anneal_;
  std::vector<PiecesPlan> starts_;
  bool has_path_ = false;
};

}  // namespace

Found search_pieces(const PlanProblem& problem, const Budget& budget,
                    uint64_t seed) {
  const PiecesProblem p(problem);
  SearchSeries series(budget, kFirstMovesOfPieces, seed);
  std::vector<std::unique_ptr<Stream>> streams(budget.num_streams());
  PiecesPlan plan;
  while (series.next(plan.value)) {
    series.run([&](SearchStream& s) {
      auto& stream = streams[s.number()];
      if (!stream) stream = std::make_unique<Stream>(problem, p, s);
      stream->run(plan);
    });
    for (const auto& s : streams) {
      if (s->best().value < plan.value) plan = s->best();
    }
  }
  Found best;
  best.moves = series.moves();
  if (plan.device.empty()) return best;
  best.value = plan.value;
  for (const int32_t g : problem.group) {
    best.plan.device.push_back(plan.device[g]);
  }
  best.plan.sequence = order_of_ops(problem);
  return best;
}

}  // namespace berth
