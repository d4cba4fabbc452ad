#include "place/planner/path_pieces.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace berth {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

PathPieces::PathPieces(const PiecesProblem& p)
    : p_(p),
      cpu_time_(static_cast<size_t>(p.num_ops), kInfinite),
      from_(static_cast<size_t>(p.num_ops)),
      to_(static_cast<size_t>(p.num_ops)),
      last_from_(static_cast<size_t>(p.num_ops)) {
  for (int32_t d = 0; d < p.num_devices; ++d) {
    if (!p.is_cpu[static_cast<size_t>(d)]) {
      add_kind(d);
      continue;
    }
    for (int32_t v = 0; v < p.num_ops; ++v) {
      const auto at = static_cast<size_t>(v);
      if (!(p.allowed[static_cast<size_t>(p.group[at])] & device_bit(d))) {
        continue;
      }
      cpu_time_[at] = std::min(cpu_time_[at], p.time_of(v, d));
    }
  }
}

void PathPieces::add_kind(int32_t device) {
  const auto alike = [&](const Kind& k) {
    if (p_.limit[static_cast<size_t>(k.device)] !=
        p_.limit[static_cast<size_t>(device)]) {
      return false;
    }
    for (int32_t v = 0; v < p_.num_ops; ++v) {
      if (p_.time_of(v, k.device) != p_.time_of(v, device)) return false;
    }
    return true;
  };
  const auto it = std::find_if(kinds_.begin(), kinds_.end(), alike);
  if (it != kinds_.end()) {
    it->devices |= device_bit(device);
  } else {
    kinds_.push_back({device, device_bit(device)});
  }
}

std::vector<int32_t> PathPieces::longest(const std::vector<double>& weight) {
  std::vector<double> length(weight.size());
  std::vector<int32_t> before(weight.size(), -1);
  int32_t last = 0;
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    const auto at = static_cast<size_t>(v);
    for (const int32_t u : p_.inputs[v]) {
      if (before[at] >= 0 && length[static_cast<size_t>(u)] <=
                                 length[static_cast<size_t>(before[at])]) {
        continue;
      }
      before[at] = u;
    }
    length[at] = weight[at];
    if (before[at] >= 0) length[at] += length[static_cast<size_t>(before[at])];
    if (length[at] > length[static_cast<size_t>(last)]) last = v;
  }
  std::vector<int32_t> path;
  for (int32_t v = last; v >= 0; v = before[static_cast<size_t>(v)]) {
    path.push_back(v);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

void PathPieces::mark(const std::vector<int32_t>& path) {
  const auto n = static_cast<int32_t>(path.size());
  std::fill(from_.begin(), from_.end(), -1);
  std::fill(to_.begin(), to_.end(), n);
  for (int32_t k = 0; k < n; ++k) {
    from_[static_cast<size_t>(path[static_cast<size_t>(k)])] = k;
    to_[static_cast<size_t>(path[static_cast<size_t>(k)])] = k;
  }
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    int32_t& from = from_[static_cast<size_t>(v)];
    for (const int32_t u : p_.inputs[v]) {
      from = std::max(from, from_[static_cast<size_t>(u)]);
    }
  }
  met_at_.assign(path.size(), {});
  for (int32_t v = p_.num_ops - 1; v >= 0; --v) {
    const auto at = static_cast<size_t>(v);
    last_from_[at] = from_[at];
    for (const int32_t r : p_.readers[v]) {
      to_[at] = std::min(to_[at], to_[static_cast<size_t>(r)]);
      last_from_[at] = std::max(last_from_[at], from_[static_cast<size_t>(r)]);
    }
    if (to_[at] < n && from_[at] >= 0) {
      met_at_[static_cast<size_t>(to_[at])].push_back(v);
    }
  }
}

// Of a piece that begins at `begin`, per its last op before `end`: transfers of
// values with one end surely in it and another surely not.
void PathPieces::add_transfers(int32_t begin, int32_t end) {
  transfers_.assign(static_cast<size_t>(end - begin) + 1, 0);
  for (int32_t u = 0; u < p_.num_ops; ++u) {
    const auto at = static_cast<size_t>(u);
    const double cost = p_.touch[at];
    if (cost <= 0 || last_from_[at] < begin) continue;
    int32_t in = from_[at] >= begin ? to_[at] : end;
    for (const int32_t r : p_.readers[u]) {
      const auto reader = static_cast<size_t>(r);
      if (from_[reader] >= begin) in = std::min(in, to_[reader]);
    }
    const int32_t out = to_[at] < begin ? end : std::min(last_from_[at], end);
    if (in >= out) continue;
    transfers_[static_cast<size_t>(in - begin)] += cost;
    transfers_[static_cast<size_t>(out - begin)] -= cost;
  }
}

// What the pieces that begin at an op of the path make possible.
void PathPieces::pieces_from(int32_t begin, int32_t end, double before) {
  add_transfers(begin, end);
  std::vector<double> work(kinds_.size(), 0);
  double bytes = 0, transfers = 0;
  DeviceMask allowed = ~DeviceMask{0};
  for (int32_t last = begin; last < end; ++last) {
    for (const int32_t v : met_at_[static_cast<size_t>(last)]) {
      const auto at = static_cast<size_t>(v);
      if (from_[at] < begin) continue;
      for (size_t k = 0; k < kinds_.size(); ++k) {
        work[k] += p_.time_of(v, kinds_[k].device);
      }
      const auto group = static_cast<size_t>(p_.group[at]);
      if (counted_[group] == begin) continue;
      counted_[group] = begin;
      bytes += p_.group_bytes[group];
      allowed &= p_.allowed[group];
    }
    transfers += transfers_[static_cast<size_t>(last - begin)];
    bool fits = false;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      if (!(allowed & kinds_[k].devices) ||
          bytes > p_.limit[static_cast<size_t>(kinds_[k].device)]) {
        continue;
      }
      fits = true;
      double& best = in_piece_[static_cast<size_t>(last) + 1];
      best = std::min(best, before + work[k] + transfers);
    }
    if (!fits) return;
  }
}

// Two ops of one group, the second an input of the first. They are in one piece
// when whatever else the second reads is a source or before the first: no path
// then leaves the piece behind the first op and comes back to the second.
PathPieces::Border PathPieces::border(int32_t before, int32_t op,
                                      int32_t at) const {
  if (p_.group[static_cast<size_t>(before)] !=
      p_.group[static_cast<size_t>(op)]) {
    return Border::kAny;
  }
  bool reads = false, only = true;
  for (const int32_t u : p_.inputs[op]) {
    reads |= u == before;
    only &= to_[static_cast<size_t>(u)] < at || p_.inputs[u].empty();
  }
  return reads && only ? Border::kSamePiece : Border::kSameDevice;
}

double PathPieces::least(const std::vector<int32_t>& path) {
  mark(path);
  const auto n = static_cast<int32_t>(path.size());
  in_piece_.assign(path.size() + 1, kInfinite);
  on_cpu_.assign(path.size() + 1, kInfinite);
  in_piece_[0] = 0;
  counted_.assign(static_cast<size_t>(p_.num_groups), -1);
  for (int32_t k = 0; k < n; ++k) {
    const auto at = static_cast<size_t>(k);
    const Border b = k == 0 ? Border::kAny : border(path[at - 1], path[at], k);
    const double change = b == Border::kAny ? 0 : kInfinite;
    const double cpu = cpu_time_[static_cast<size_t>(path[at])];
    on_cpu_[at + 1] = std::min(on_cpu_[at], in_piece_[at] + change) + cpu;
    const double other = b == Border::kSamePiece ? kInfinite : 0;
    const double before = std::min(in_piece_[at] + other, on_cpu_[at] + change);
    if (before < kInfinite) pieces_from(k, n, before);
  }
  return std::min(in_piece_.back(), on_cpu_.back());
}

}  // namespace berth
