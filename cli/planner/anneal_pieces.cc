#include "cli/planner/anneal_pieces.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    std::erase(row, g);
    rows.add(row);
  }
  return rows;
}

}  // namespace

PiecesAnneal::PiecesAnneal(const PiecesProblem& p, const PiecesChain& chain)
    : p_(p),
      chain_(chain),
      evaluator_(p),
      neighbours_(neighbours_of(p)),
      device_(static_cast<size_t>(p.num_groups)),
      on_(static_cast<size_t>(p.num_ops)),
      held_(static_cast<size_t>(p.num_devices)),
      seen_(static_cast<size_t>(p.num_groups), 0) {}

void PiecesAnneal::put(int32_t group, int32_t device) {
  const auto at = static_cast<size_t>(group);
  held_[static_cast<size_t>(device_[at])] -= p_.group_bytes[at];
  held_[static_cast<size_t>(device)] += p_.group_bytes[at];
  device_[at] = device;
  for (const int32_t v : p_.ops_of[group]) on_[static_cast<size_t>(v)] = device;
}

double PiecesAnneal::start(const std::vector<int32_t>& device) {
  device_ = device;
  std::fill(held_.begin(), held_.end(), 0);
  for (int32_t g = 0; g < p_.num_groups; ++g) {
    const auto at = static_cast<size_t>(g);
    held_[static_cast<size_t>(device_[at])] += p_.group_bytes[at];
    put(g, device_[at]);
  }
  const double e = energy();
  keep_best();
  return e;
}

// Returns the value; bytes over the limits count as a time several times that
// of everything.
double PiecesAnneal::energy() {
  value_ = evaluator_.value(on_);
  over_ = 0;
  for (size_t d = 0; d < held_.size(); ++d) {
    const double over = held_[d] - p_.limit[d];
    if (over > 0) over_ += over / p_.limit[d] + 1e-3;
  }
  return value_ * (1 + 4 * over_);
}

void PiecesAnneal::keep_best() {
  if (over_ > 0 || value_ >= best_.value) return;
  best_.value = value_;
  best_.device = device_;
}

// Returns a neighbour's device for the group, or sometimes any allowed one.
int32_t PiecesAnneal::device_nearby(int32_t group, StreamRandom& random) const {
  const DeviceSet mask = p_.allowed[static_cast<size_t>(group)];
  const auto near = neighbours_[group];
  if (!near.empty() && random.below(6) != 0) {
    const int32_t other =
        near[random.below(static_cast<uint32_t>(near.size()))];
    return device_[static_cast<size_t>(other)];
  }
  return random.below(2) == 0 ? roomiest(mask) : any_of(mask, random);
}

// Returns a random device of a mask; -1: the mask is empty.
int32_t PiecesAnneal::any_of(DeviceSet mask, StreamRandom& random) const {
  if (mask == 0) return -1;
  uint32_t skip = random.below(static_cast<uint32_t>(mask.count()));
  while (skip-- > 0) mask.drop_first();
  return mask.first();
}

// Returns the accelerator of a mask with the most free memory; -1: none.
int32_t PiecesAnneal::roomiest(DeviceSet mask) const {
  int32_t best = -1;
  for (; mask; mask.drop_first()) {
    const auto d = static_cast<size_t>(mask.first());
    if (p_.is_cpu[d]) continue;
    const auto room = [&](size_t device) {
      return p_.limit[device] - held_[device];
    };
    if (best < 0 || room(d) > room(static_cast<size_t>(best))) {
      best = static_cast<int32_t>(d);
    }
  }
  return best;
}

// Moves a connected set of groups from one device to another. Its cost changes
// only where it meets others there, but memory is freed and used.
bool PiecesAnneal::propose_piece(StreamRandom& random) {
  const auto first =
      static_cast<int32_t>(random.below(static_cast<uint32_t>(p_.num_groups)));
  const int32_t from = device_[static_cast<size_t>(first)];
  if (p_.is_cpu[static_cast<size_t>(from)]) return false;
  const int32_t to = any_of(p_.allowed[static_cast<size_t>(first)], random);
  if (to == from || to < 0) return false;
  changes_.push_back({first, to});
  seen_[static_cast<size_t>(first)] = ++tried_;
  for (size_t k = 0; k < changes_.size(); ++k) {
    for (const int32_t g : neighbours_[changes_[k].group]) {
      const auto at = static_cast<size_t>(g);
      if (device_[at] != from || seen_[at] == tried_) continue;
      seen_[at] = tried_;
      changes_.push_back({g, to});
    }
  }
  return true;
}

// Number of groups that move at once: a power of two up to 64 or a quarter of
// all groups, each equally likely.
uint32_t PiecesAnneal::random_size(StreamRandom& random) const {
  const auto quarter = static_cast<uint32_t>(p_.num_groups) / 4 + 1;
  const auto powers = static_cast<uint32_t>(std::bit_width(quarter));
  return 1u << random.below(std::min(powers, 7u));
}

// Moves a few neighbours on one device to another device nearby.
bool PiecesAnneal::propose_cluster(StreamRandom& random) {
  const auto first =
      static_cast<int32_t>(random.below(static_cast<uint32_t>(p_.num_groups)));
  const int32_t from = device_[static_cast<size_t>(first)];
  const size_t most = random_size(random);
  changes_.push_back({first, 0});
  ++tried_;
  seen_[static_cast<size_t>(first)] = tried_;
  int32_t to = device_nearby(first, random);
  for (size_t k = 0; k < changes_.size() && changes_.size() < most; ++k) {
    for (const int32_t g : neighbours_[changes_[k].group]) {
      const auto at = static_cast<size_t>(g);
      if (changes_.size() == most || seen_[at] == tried_) continue;
      seen_[at] = tried_;
      if (device_[at] != from) {
        if (to == from) to = device_[at];
        continue;
      }
      if (random.below(8) != 0) changes_.push_back({g, 0});
    }
  }
  for (Change& c : changes_) c.device = to;
  return to >= 0 && to != from;
}

// Moves a window of an order to the device at one of its ends.
bool PiecesAnneal::propose_window(StreamRandom& random) {
  const auto n = static_cast<uint32_t>(order_.size());
  const uint32_t length = 1 + random.below(random_size(random));
  const uint32_t begin = random.below(n - length + 1);
  const bool before = random.below(2) == 0;
  const uint32_t at = before
                          ? (begin > 0 ? begin - 1 : begin + length)
                          : (begin + length < n ? begin + length : begin - 1);
  if (at >= n) return false;
  const int32_t to = random.below(12) == 0
                         ? device_nearby(order_[begin], random)
                         : device_[static_cast<size_t>(order_[at])];
  if (to < 0) return false;
  for (uint32_t k = begin; k < begin + length; ++k) {
    if (device_[static_cast<size_t>(order_[k])] != to) {
      changes_.push_back({order_[k], to});
    }
  }
  return !changes_.empty();
}

// Swaps the devices of two groups.
bool PiecesAnneal::propose_swap(StreamRandom& random) {
  const auto n = static_cast<uint32_t>(p_.num_groups);
  const auto a = static_cast<int32_t>(random.below(n));
  const auto b = static_cast<int32_t>(random.below(n));
  const int32_t on_a = device_[static_cast<size_t>(a)];
  const int32_t on_b = device_[static_cast<size_t>(b)];
  changes_ = {{a, on_b}, {b, on_a}};
  return on_a != on_b;
}

bool PiecesAnneal::propose(StreamRandom& random) {
  changes_.clear();
  const uint32_t kind = random.below(17);
  const bool some = kind < 7    ? propose_cluster(random)
                    : kind < 14 ? propose_window(random)
                    : kind < 16 ? propose_piece(random)
                                : propose_swap(random);
  if (!some) return false;
  for (const Change& c : changes_) {
    if (!p_.allowed[static_cast<size_t>(c.group)].has(c.device)) {
      return false;
    }
  }
  return true;
}

void PiecesAnneal::apply() {
  for (Change& c : changes_) {
    const int32_t was = device_[static_cast<size_t>(c.group)];
    put(c.group, c.device);
    c.device = was;
  }
}

void PiecesAnneal::undo() {
  for (const Change& c : changes_) put(c.group, c.device);
}

int64_t PiecesAnneal::run(StreamRandom& random, double hot,
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

}  // namespace berth
