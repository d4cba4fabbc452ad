#include "cli/planner/piece_cut.h"

#include <algorithm>
#include <cmath>

#include "base/infinity.h"

namespace berth {

namespace {

constexpr int32_t kInside = 0, kOutside = 1;  // nodes of the flow
constexpr int64_t kMostUnits = int64_t{1} << 49;
constexpr int kDoublings = 8, kTangents = 4;

}  // namespace

PathLabels labels_of(const PiecesProblem& p, const std::vector<int32_t>& path) {
  const size_t ops = p.num_ops;
  PathLabels l{std::vector<int32_t>(ops, -1),
               std::vector<int32_t>(ops, static_cast<int32_t>(path.size()))};
  for (size_t k = 0; k < path.size(); ++k) {
    l.from[path[k]] = l.to[path[k]] = k;
  }
  for (int32_t v = 0; v < p.num_ops; ++v) {
    int32_t& from = l.from[v];
    for (const int32_t u : p.inputs[v]) {
      from = std::max(from, l.from[u]);
    }
  }
  for (int32_t v = p.num_ops - 1; v >= 0; --v) {
    int32_t& to = l.to[v];
    for (const int32_t r : p.readers[v]) {
      to = std::min(to, l.to[r]);
    }
  }
  return l;
}

bool in_one_piece(const PiecesProblem& p, int32_t input, int32_t op) {
  if (p.group[input] != p.group[op]) {
    return false;
  }
  const auto known = p.inputs[input];
  return std::all_of(p.inputs[op].begin(), p.inputs[op].end(), [&](int32_t u) {
    return u == input || p.inputs[u].empty() ||
           std::find(known.begin(), known.end(), u) != known.end();
  });
}

PieceCut::PieceCut(const PiecesProblem& p)
    : p_(p),
      work_(static_cast<size_t>(p.num_ops), kInfinity),
      counted_(static_cast<size_t>(p.num_ops), 0),
      node_(static_cast<size_t>(p.num_ops)),
      seen_(static_cast<size_t>(p.num_groups), 0) {
  double sum = 1;
  for (int32_t v = 0; v < p.num_ops; ++v) {
    double& work = work_[v];
    for (int32_t d = 0; d < p.num_devices; ++d) {
      if (p.is_cpu[d]) continue;
      work = std::min(work, p.time_of(v, d));
      most_bytes_ = std::max(most_bytes_, p.limit[d]);
    }
    sum += p.touch[v] + (std::isfinite(work) ? work : 0);
    for (const int32_t u : p.inputs[v]) {
      if (in_one_piece(p, u, v)) ties_.emplace_back(u, v);
    }
  }
  scale_ = static_cast<double>(kMostUnits) / sum;
}

void PieceCut::set_counted(const std::vector<int32_t>& ops) {
  std::fill(counted_.begin(), counted_.end(), 0);
  for (const int32_t v : ops) counted_[v] = 1;
}

// Rounds down, like everything in a lower bound.
int64_t PieceCut::units(double cost) const {
  const double most = static_cast<double>(kMostUnits);
  return static_cast<int64_t>(std::min(cost * scale_, most));
}

void PieceCut::add_ops(const PathLabels& labels, int32_t begin, int32_t last,
                       double price) {
  using Side = PathLabels::Side;
  flow_.reset(2);
  ++cuts_;
  inside_bytes_ = 0;
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    const Side side = labels.side(v, begin, last);
    node_[v] = side == Side::kFree     ? -1
               : side == Side::kInside ? kInside
                                       : kOutside;
    const size_t group = p_.group[v];
    if (side != Side::kInside || seen_[group] == cuts_) continue;
    seen_[group] = cuts_;
    inside_bytes_ += p_.group_bytes[group];
  }
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    if (node_[v] >= 0) continue;
    node_[v] = flow_.add_node();
    const bool held = seen_[p_.group[v]] == cuts_;
    const double bytes = held ? 0 : p_.bytes[v];
    const double work = counted_[v] ? 0 : work_[v];
    flow_.add_arcs(node_[v], kOutside, units(work + price * bytes), 0);
  }
}

// A value is a net: it costs its transfer when one end is in the piece and one
// is not. Values that are certainly cut are counted elsewhere.
void PieceCut::add_values(const PathLabels& labels, int32_t begin,
                          int32_t last) {
  using Side = PathLabels::Side;
  for (int32_t u = 0; u < p_.num_ops; ++u) {
    const double cost = p_.touch[u];
    if (cost <= 0) continue;
    bool has[3] = {false, false, false};
    const auto look = [&](int32_t op) {
      has[static_cast<size_t>(labels.side(op, begin, last))] = true;
    };
    look(u);
    for (const int32_t r : p_.readers[u]) look(r);
    if (!has[static_cast<size_t>(Side::kFree)]) continue;
    if (has[static_cast<size_t>(Side::kInside)] &&
        has[static_cast<size_t>(Side::kOutside)]) {
      continue;
    }
    const int32_t in = flow_.add_node(), out = flow_.add_node();
    flow_.add_arcs(in, out, units(cost), 0);
    const auto tie = [&](int32_t op) {
      const int32_t node = node_[op];
      if (node != kOutside) flow_.add_arcs(node, in, MaxFlow::kInfinite, 0);
      if (node != kInside) flow_.add_arcs(out, node, MaxFlow::kInfinite, 0);
    };
    tie(u);
    for (const int32_t r : p_.readers[u]) tie(r);
  }
}

void PieceCut::add_ties() {
  for (const auto& [u, v] : ties_) {
    const int32_t a = node_[u];
    const int32_t b = node_[v];
    if (a != b) {
      flow_.add_arcs(a, b, MaxFlow::kInfinite, MaxFlow::kInfinite);
    }
  }
}

double PieceCut::least(const PathLabels& labels, int32_t begin, int32_t last,
                       double price, double* bytes) {
  add_ops(labels, begin, last, price);
  add_values(labels, begin, last);
  add_ties();
  const int64_t flow = flow_.run(kInside, kOutside, MaxFlow::kInfinite);
  *bytes = inside_bytes_;
  if (flow >= MaxFlow::kInfinite) return kInfinity;  // no such piece exists
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    if (node_[v] <= kOutside || !flow_.on_source_side(node_[v])) continue;
    if (seen_[p_.group[v]] != cuts_) {
      *bytes += p_.bytes[v];
    }
  }
  return static_cast<double>(flow) / scale_ +
         (price > 0 ? price * (inside_bytes_ - most_bytes_) : 0);
}

std::vector<int32_t> PieceCut::members() const {
  std::vector<int32_t> ops;
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    const int32_t node = node_[v];
    if (node != kOutside && flow_.on_source_side(node)) ops.push_back(v);
  }
  return ops;
}

// Concave in the price; its slope is the excess of the cheapest piece.
double PieceCut::best(const PathLabels& labels, int32_t begin, int32_t last,
                      double* price) {
  *price = 0;
  double bytes = 0;
  double best = least(labels, begin, last, 0, &bytes);
  if (!(bytes > most_bytes_) || !std::isfinite(best)) return best;
  struct Tangent {
    double price, value, slope;
  };
  Tangent low{0, best, bytes - most_bytes_}, high = low;
  const auto look = [&](double at) {
    const double value = least(labels, begin, last, at, &bytes);
    if (value > best) {
      best = value;
      *price = at;
    }
    (bytes > most_bytes_ ? low : high) = {at, value, bytes - most_bytes_};
  };
  double next = (best + 1 / scale_) / most_bytes_;
  for (int k = 0; k < kDoublings && high.slope > 0; ++k, next *= 4) {
    look(next);
  }
  for (int k = 0; k < kTangents && high.slope <= 0 && low.slope > 0; ++k) {
    const double meet = (high.value - high.slope * high.price - low.value +
                         low.slope * low.price) /
                        (low.slope - high.slope);
    if (!(meet > low.price) || !(meet < high.price)) break;
    look(meet);
  }
  return best;
}

}  // namespace berth
