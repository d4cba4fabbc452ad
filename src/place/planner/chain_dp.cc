#include "place/planner/chain_dp.h"

#include <algorithm>

#include "base/infinity.h"

namespace berth {

namespace {

constexpr size_t kMaxStates = 64;
// Priced piece ends that count as one move, and that lie between budget checks.
constexpr int64_t kStepsPerMove = 4, kStepsBetweenLooks = 1024;

bool equal_devices(const LoadProblem& p, int32_t a, int32_t b) {
  if (p.device_class[a] != p.device_class[b] || p.limit[a] != p.limit[b]) {
    return false;
  }
  const auto same = [&](const DeviceSet& m) { return m.has(a) == m.has(b); };
  const int32_t devices = p.num_devices();
  return same(p.pays) && same(p.sender_pays) &&
         (p.receiver[a] < 0) == (p.receiver[b] < 0) &&
         (p.receiver[a] < devices) == (p.receiver[b] < devices) &&
         std::ranges::all_of(p.allowed, same);
}

}  // namespace

ChainCutter::ChainCutter(const LoadProblem& problem)
    : p_(problem),
      stamp_(static_cast<size_t>(problem.num_nets()), -1),
      seen_(static_cast<size_t>(problem.num_nets()), 0),
      sent_(static_cast<size_t>(problem.num_nets()), 0) {
  for (int32_t d = 0; d < p_.num_devices(); ++d) {
    const auto k = std::ranges::find_if(kinds_, [&](const Kind& kind) {
      return equal_devices(p_, kind.devices[0], d);
    });
    if (k != kinds_.end()) {
      k->devices.push_back(d);
    } else {
      kinds_.push_back({{d}});
    }
  }
  size_t states = 1;
  for (Kind& kind : kinds_) {
    states = std::min(states * (kind.devices.size() + 1), kMaxStates + 1);
    const double n = p_.limit.size() * kind.devices.size();
    for (int32_t from = 0; p_.by_links && from < p_.num_devices(); ++from) {
      for (const int32_t to : kind.devices) {
        const size_t link = p_.links.link(from, to);
        kind.latency_us += p_.latency_us[link] / n;
        kind.us_per_byte += p_.us_per_byte[link] / n;
      }
    }
  }
  by_counts_ = states <= kMaxStates;
  if (by_counts_) make_arcs_by_counts();
}

// A state is how many devices of each kind are used, as digits of a number.
void ChainCutter::make_arcs_by_counts() {
  size_t weight = 1;
  for (const Kind& kind : kinds_) weight *= kind.devices.size() + 1;
  num_states_ = weight;
  weight = 1;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const size_t base = kinds_[k].devices.size() + 1;
    for (size_t s = 0; s < num_states_; ++s) {
      if (s / weight % base + 1 == base) continue;
      arcs_.push_back({static_cast<int32_t>(s),
                       static_cast<int32_t>(s + weight),
                       static_cast<int32_t>(k)});
    }
    weight *= base;
  }
}

// Devices in a random order; a state is how many of them have been passed.
void ChainCutter::make_arcs_by_list(StreamRandom& random) {
  std::vector<int32_t> list;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    list.insert(list.end(), kinds_[k].devices.size(), static_cast<int32_t>(k));
  }
  random.shuffle(list);
  arcs_.clear();
  num_states_ = list.size() + 1;
  for (size_t s = 0; s < list.size(); ++s) {
    const int32_t state = s;
    arcs_.push_back({state, state + 1, list[s]});
  }
}

void ChainCutter::add_net(Piece& piece, int32_t net, double sign) const {
  if (seen_[net] == static_cast<int32_t>(p_.pins[net].size())) return;
  if (!p_.by_links) {
    piece.touch_us += sign * p_.touch_us[net];
    return;
  }
  double& copies = sent_[net] ? piece.out_copies : piece.in_copies;
  double& bytes = sent_[net] ? piece.out_bytes : piece.in_bytes;
  copies += sign * p_.copies[net];
  bytes += sign * p_.net_bytes[net];
}

void ChainCutter::grow(Piece& piece, int32_t unit, int32_t stamp) {
  for (size_t c = 0; c < p_.num_classes; ++c) {
    piece.work[c] += p_.work[static_cast<size_t>(unit) * p_.num_classes + c];
  }
  piece.bytes += p_.bytes[unit];
  piece.allowed &= p_.allowed[unit];
  for (const int32_t n : p_.nets[unit]) {
    if (stamp_[n] != stamp) {
      stamp_[n] = stamp;
      seen_[n] = 0;
      sent_[n] = 0;
    } else {
      add_net(piece, n, -1);
    }
    ++seen_[n];
    if (p_.pins[n][0] == unit) sent_[n] = 1;
    add_net(piece, n, 1);
  }
}

double ChainCutter::load_of(const Piece& piece, const Kind& kind) const {
  const int32_t d = kind.devices[0];
  if (!piece.allowed.has(d) || piece.bytes > p_.limit[d]) {
    return kInfinity;
  }
  double load = piece.work[p_.device_class[d]];
  if (!p_.by_links) {
    return p_.pays.has(d) ? load + piece.touch_us : load;
  }
  const double in_us =
      piece.in_copies * kind.latency_us + piece.in_bytes * kind.us_per_byte;
  if (p_.sender_pays.has(d)) {
    load +=
        piece.out_copies * kind.latency_us + piece.out_bytes * kind.us_per_byte;
  }
  if (p_.receiver[d] == d) return load + in_us;
  return p_.receiver[d] < 0 ? load : std::max(load, in_us);
}

// Ends pieces that begin at `begin`. Returns whether longer ones may be below.
bool ChainCutter::relax(const Piece& piece, int32_t begin, int32_t end,
                        double below) {
  bool longer = false;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const int32_t d = kinds_[k].devices[0];
    loads_[k] = load_of(piece, kinds_[k]);
    longer |= piece.allowed.has(d) && piece.work[p_.device_class[d]] < below &&
              piece.bytes <= p_.limit[d];
  }
  for (const int32_t a : open_arcs_) {
    const Arc& arc = arcs_[a];
    const double value =
        std::max(loads_[arc.kind], cell(begin, arc.from).value);
    if (value >= below) continue;
    Cell& to = cell(end, arc.to);
    if (value < to.value) to = {value, begin, a};
  }
  return longer;
}

std::vector<int32_t> ChainCutter::cut(std::span<const int32_t> order,
                                      double below, SearchStream& stream,
                                      double end) {
  if (!by_counts_) make_arcs_by_list(stream.random);
  const int32_t n = order.size();
  cells_.assign((order.size() + 1) * num_states_, {kInfinity, -1, -1});
  loads_.resize(kinds_.size());
  std::ranges::fill(stamp_, -1);
  cell(0, 0).value = 0;
  Piece piece;
  int64_t steps = 0;
  const auto last = static_cast<int32_t>(num_states_) - 1;
  for (int32_t a = 0; a <= n; ++a) {
    for (int32_t s = 1; s <= last && !by_counts_; ++s) {
      if (cell(a, s - 1).value < cell(a, s).value) {
        cell(a, s) = {cell(a, s - 1).value, a, -1};
      }
    }
    open_arcs_.clear();
    for (size_t k = 0; k < arcs_.size() && a < n; ++k) {
      if (cell(a, arcs_[k].from).value < below) {
        open_arcs_.push_back(k);
      }
    }
    if (open_arcs_.empty()) continue;
    if (steps >= kStepsBetweenLooks) {
      stream.take(steps / kStepsPerMove);
      steps = 0;
      if (stream.spent() >= end) return {};
    }
    piece = Piece();
    piece.work.assign(p_.num_classes, 0);
    for (int32_t b = a; b < n; ++b) {
      grow(piece, order[b], a);
      ++steps;
      if (!relax(piece, a, b + 1, below)) break;
    }
  }
  stream.take(steps / kStepsPerMove + 1);
  int32_t best = 0;
  for (int32_t s = 1; s <= last; ++s) {
    if (cell(n, s).value < cell(n, best).value) best = s;
  }
  if (!(cell(n, best).value < below)) return {};
  return assignment(order, best);
}

std::vector<int32_t> ChainCutter::assignment(std::span<const int32_t> order,
                                             int32_t state) {
  std::vector<int32_t> device(order.size(), 0);
  std::vector<size_t> used(kinds_.size(), 0);
  int32_t end = order.size();
  while (end > 0) {
    const Cell& c = cell(end, state);
    if (c.arc < 0) {
      --state;
      continue;
    }
    const Arc& arc = arcs_[c.arc];
    const Kind& kind = kinds_[arc.kind];
    const int32_t d = kind.devices[used[arc.kind]++];
    for (int32_t i = c.begin; i < end; ++i) device[order[i]] = d;
    end = c.begin;
    state = arc.from;
  }
  return device;
}

}  // namespace berth
