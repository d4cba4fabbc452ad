#include "cli/planner/path_pieces.h"

#include <algorithm>
#include <cmath>

#include "base/infinity.h"

namespace berth {

PathPieces::PathPieces(const PiecesProblem& p)
    : p_(p),
      cpu_time_(static_cast<size_t>(p.num_ops), kInfinity),
      labels_{std::vector<int32_t>(p.num_ops), std::vector<int32_t>(p.num_ops)},
      piece_cut_(p),
      last_from_(static_cast<size_t>(p.num_ops)) {
  for (int32_t d = 0; d < p.num_devices; ++d) {
    if (!p.is_cpu[d]) {
      add_kind(d);
      continue;
    }
    for (int32_t v = 0; v < p.num_ops; ++v) {
      if (!p.allowed[p.group[v]].has(d)) {
        continue;
      }
      cpu_time_[v] = std::min(cpu_time_[v], p.time_of(v, d));
    }
  }
}

void PathPieces::add_kind(int32_t device) {
  const auto alike = [&](const Kind& k) {
    if (p_.limit[k.device] != p_.limit[device]) {
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

std::vector<int32_t> PathPieces::longest(
    const std::vector<double>& weight) const {
  std::vector<double> length(weight.size());
  std::vector<int32_t> before(weight.size(), -1);
  int32_t last = 0;
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    for (const int32_t u : p_.inputs[v]) {
      if (before[v] < 0 || length[u] > length[before[v]]) {
        before[v] = u;
      }
    }
    length[v] = weight[v];
    if (before[v] >= 0) length[v] += length[before[v]];
    if (length[v] > length[last]) last = v;
  }
  std::vector<int32_t> path;
  for (int32_t v = p_.num_ops > 0 ? last : -1; v >= 0; v = before[v]) {
    path.push_back(v);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

double PathPieces::least_time(int32_t op) const {
  double least = cpu_time_[op];
  for (const Kind& k : kinds_) {
    least = std::min(least, p_.time_of(op, k.device));
  }
  return least;
}

double PathPieces::weight(int32_t op, int rule) const {
  if (rule % kRules == 1) return p_.bytes[op];
  if (rule % kRules == 3) return 1;
  double least = least_time(op);
  if (!std::isfinite(least)) least = 0;
  return rule % kRules == 0 ? least : least + p_.touch[op];
}

// For pieces that begin at `begin`, adds at their last op the transfers of
// values with one end surely inside and one surely outside.
void PathPieces::add_transfers(int32_t begin) {
  const int32_t end = path_.size();
  transfers_.assign(static_cast<size_t>(end - begin) + 1, 0);
  for (int32_t u = 0; u < p_.num_ops; ++u) {
    const double cost = p_.touch[u];
    if (cost <= 0 || last_from_[u] < begin) continue;
    int32_t in = labels_.from[u] >= begin ? labels_.to[u] : end;
    for (const int32_t r : p_.readers[u]) {
      if (labels_.from[r] >= begin) in = std::min(in, labels_.to[r]);
    }
    const int32_t out =
        labels_.to[u] < begin ? end : std::min(last_from_[u], end);
    if (in >= out) continue;
    transfers_[in - begin] += cost;
    transfers_[out - begin] -= cost;
  }
}

// Adds all pieces that begin at `begin` and may fit on an accelerator.
void PathPieces::add_pieces(int32_t begin) {
  add_transfers(begin);
  std::vector<Piece>& row = pieces_.emplace_back();
  std::vector<double> work(kinds_.size(), 0);
  double bytes = 0, transfers = 0;
  DeviceSet allowed = ~DeviceSet{0};
  for (size_t last = static_cast<size_t>(begin); last < path_.size(); ++last) {
    for (const int32_t v : met_at_[last]) {
      if (labels_.from[v] < begin) continue;
      for (size_t k = 0; k < kinds_.size(); ++k) {
        work[k] += p_.time_of(v, kinds_[k].device);
      }
      const size_t group = p_.group[v];
      if (counted_[group] == begin) continue;
      counted_[group] = begin;
      bytes += p_.group_bytes[group];
      allowed &= p_.allowed[group];
    }
    transfers += transfers_[last - static_cast<size_t>(begin)];
    double least = kInfinity;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      if ((allowed & kinds_[k].devices) &&
          bytes <= p_.limit[kinds_[k].device]) {
        least = std::min(least, work[k] + std::max(transfers, 0.0));
      }
    }
    if (std::isinf(least)) return;  // nor does a longer one fit
    row.push_back({least, false});
  }
}

// Fills in_piece_ and on_cpu_ with the least time of the first ops of the path,
// the last of them in a piece or on a CPU. Ops of one group share a device.
double PathPieces::cheapest() {
  in_piece_.assign(path_.size() + 1, {kInfinity, -1, false});
  on_cpu_.assign(path_.size() + 1, {kInfinity, -1, false});
  in_piece_[0].cost = 0;
  for (size_t k = 0; k < path_.size(); ++k) {
    const int32_t op = path_[k];
    const bool tied = k > 0 && p_.group[path_[k - 1]] == p_.group[op];
    const bool one = tied && in_one_piece(p_, path_[k - 1], op);
    const double piece = in_piece_[k].cost, cpu = on_cpu_[k].cost;
    const bool stay = tied || cpu <= piece;
    on_cpu_[k + 1] = {(stay ? cpu : piece) + cpu_time_[op], -1, stay};
    const bool leave = !tied && cpu < piece;
    const double before = leave ? cpu : one ? kInfinity : piece;
    if (std::isinf(before)) continue;
    for (size_t length = 0; length < pieces_[k].size(); ++length) {
      Step& step = in_piece_[k + length + 1];
      const double cost = before + pieces_[k][length].cost;
      if (cost < step.cost) step = {cost, static_cast<int32_t>(k), leave};
    }
  }
  return std::min(in_piece_.back().cost, on_cpu_.back().cost);
}

std::vector<std::pair<int32_t, int32_t>> PathPieces::cheapest_way() const {
  std::vector<std::pair<int32_t, int32_t>> pieces;
  size_t k = path_.size();
  bool cpu = on_cpu_[k].cost < in_piece_[k].cost;
  while (k > 0) {
    const Step& step = cpu ? on_cpu_[k] : in_piece_[k];
    cpu = step.after_cpu;
    if (step.begin >= 0) {
      pieces.emplace_back(step.begin, static_cast<int32_t>(k) - 1);
    }
    k = step.begin >= 0 ? static_cast<size_t>(step.begin) : k - 1;
  }
  return pieces;
}

// Computes missing cuts of the cheapest pieces; returns false if none is.
bool PathPieces::cut_cheapest(const std::function<bool()>& more) {
  bool some = false;
  for (const auto& [begin, last] : cheapest_way()) {
    Piece& piece = pieces_[begin][last - begin];
    if (piece.is_cut) continue;
    if (!more()) return false;
    piece.is_cut = some = true;
    Cut cut{begin, last, 0};
    const double add = piece_cut_.best(labels_, begin, last, &cut.price);
    if (add > 0) {
      piece.cost += add;
      cuts_.push_back(cut);
    }
  }
  return some;
}

double PathPieces::least(const std::vector<int32_t>& path,
                         const std::function<bool()>& more,
                         const std::vector<int32_t>& others) {
  path_ = path;
  piece_cut_.set_counted(others);
  labels_ = labels_of(p_, path);
  cuts_.clear();
  pieces_.clear();
  met_at_.assign(path.size(), {});
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    last_from_[v] = labels_.from[v];
    for (const int32_t r : p_.readers[v]) {
      last_from_[v] = std::max(last_from_[v], labels_.from[r]);
    }
    if (labels_.from[v] >= 0 &&
        labels_.to[v] < static_cast<int32_t>(path.size())) {
      met_at_[labels_.to[v]].push_back(v);
    }
  }
  counted_.assign(p_.num_groups, -1);
  for (size_t k = 0; k < path.size(); ++k) add_pieces(static_cast<int32_t>(k));
  double value = cheapest();
  while (std::isfinite(value) && cut_cheapest(more)) value = cheapest();
  return value;
}

std::vector<std::vector<int32_t>> PathPieces::cheapest_pieces() {
  std::vector<std::vector<int32_t>> pieces;
  for (const auto& [begin, last] : cheapest_way()) {
    double price = 0, bytes = 0;
    for (const Cut& c : cuts_) {
      if (c.begin == begin && c.last == last) price = c.price;
    }
    piece_cut_.least(labels_, begin, last, price, &bytes);
    pieces.push_back(piece_cut_.members());
  }
  return pieces;
}

}  // namespace berth
