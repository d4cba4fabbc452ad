#include "cli/planner/pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/infinity.h"
#include "berth/errors.h"

namespace berth {

namespace {

constexpr size_t kLanes = 8;  // depths per instruction

// A fixed number of elements, for one vector instruction.
template <class Depth>
void raise(Depth* __restrict row, const Depth* __restrict from) {
  for (size_t k = 0; k < kLanes; ++k) row[k] = std::max(row[k], from[k]);
}

// Returns op numbers in a graph order, breadth first.
std::vector<int32_t> topological(const PlanProblem& p) {
  const SimulatedGraph& g = p.graph;
  std::vector<int32_t> missing, order;
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    if (g.values[i].size() != 1 || !g.controls[i].empty()) {
      throw errors::InvalidArgument(fmt::format(
          "plan \"{}\": op \"{}\" has {} outputs and {} controls; expected one "
          "output and no controls in the latency of dnn-partitioning",
          p.name, p.names[i], g.values[i].size(), g.controls[i].size()));
    }
    missing.push_back(g.reads[i].size());
    if (missing.back() == 0) order.push_back(i);
  }
  for (size_t k = 0; k < order.size(); ++k) {
    for (const int32_t r : g.readers[g.values[order[k]][0]]) {
      if (--missing[r] == 0) order.push_back(r);
    }
  }
  return order;
}

}  // namespace

PiecesProblem::PiecesProblem(const PlanProblem& p)
    : num_ops(p.num_ops()),
      num_devices(p.num_devices()),
      num_groups(p.num_groups),
      original(topological(p)),
      allowed(allowed_of_groups(p)),
      group_bytes(static_cast<size_t>(p.num_groups), 0) {
  std::vector<int32_t> number(original.size());
  for (size_t k = 0; k < original.size(); ++k) {
    number[original[k]] = static_cast<int32_t>(k);
  }
  std::vector<std::vector<int32_t>> groups(group_bytes.size());
  std::vector<int32_t> row;
  const auto add_row = [&](Rows<int32_t>& to) {
    std::sort(row.begin(), row.end());
    to.add(row);
    row.clear();
  };
  for (const int32_t i : original) {
    for (const int32_t v : p.graph.reads[i]) {
      row.push_back(number[p.graph.producer[v]]);
    }
    add_row(inputs);
    const int32_t value = p.graph.values[i][0];
    for (const int32_t r : p.graph.readers[value]) row.push_back(number[r]);
    add_row(readers);
    touch.push_back(p.touch_us.empty() ? 0 : p.touch_us[value]);
    bytes.push_back(p.resident_bytes[i]);
    groups[p.group[i]].push_back(group.size());
    group.push_back(p.group[i]);
    group_bytes[p.group[i]] += p.resident_bytes[i];
    for (int32_t d = 0; d < num_devices; ++d) {
      time.push_back(p.takes_time(i) ? p.costs.time(i, d).us : 0);
    }
  }
  ops_of = Rows<int32_t>(groups);
  for (int32_t d = 0; d < num_devices; ++d) {
    const int64_t most = p.costs.devices[d].memory_limit;
    limit.push_back(most > 0 ? static_cast<double>(most) : kInfinity);
    is_cpu.push_back(!p.free_of_touch.empty() && p.free_of_touch[d]);
  }
}

PiecesEvaluator::PiecesEvaluator(const PiecesProblem& p)
    : p_(p),
      width_((static_cast<size_t>(p.num_devices) + kLanes - 1) / kLanes *
             kLanes),
      piece_(static_cast<size_t>(p.num_ops)),
      by_depth_(static_cast<size_t>(p.num_devices)) {}

int32_t PiecesEvaluator::new_piece(int32_t device) {
  if (static_cast<size_t>(num_pieces_) == pieces_.size()) {
    pieces_.emplace_back();
    seen_by_.emplace_back();
  }
  pieces_[num_pieces_] = {device, 0, -1, 0, 0};
  seen_by_[num_pieces_] = -1;
  return num_pieces_++;
}

// Depths per device: the largest number of its pieces on a path. At an op's own
// device the depth numbers its pieces.
template <class Depth>
void PiecesEvaluator::cut(std::span<const int32_t> device,
                          std::vector<Depth>& depths) {
  depths.resize(static_cast<size_t>(p_.num_ops) * width_);
  num_pieces_ = 0;
  for (auto& list : by_depth_) list.clear();
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    const int32_t d = device[v];
    Depth* row = &depths[static_cast<size_t>(v) * width_];
    std::fill(row, row + width_, Depth{0});
    Depth own = 1;
    for (const int32_t u : p_.inputs[v]) {
      const Depth* from = &depths[static_cast<size_t>(u) * width_];
      for (size_t k = 0; k < width_; k += kLanes) raise(row + k, from + k);
      const bool comes_back = device[u] != d;
      own = std::max(own, static_cast<Depth>(from[d] + comes_back));
    }
    int32_t& piece = piece_[v];
    if (p_.is_cpu[d]) {
      piece = new_piece(d);
    } else {
      row[d] = own;
      std::vector<int32_t>& list = by_depth_[d];
      if (list.size() <= static_cast<size_t>(own)) {
        list.resize(static_cast<size_t>(own) + 1, -1);
      }
      int32_t& known = list[own];
      if (known < 0) known = new_piece(d);
      piece = known;
    }
    pieces_[piece].length += p_.time_of(v, d);
  }
}

// Adds the costs of values read across pieces, and the waits.
void PiecesEvaluator::connect() {
  edges_.clear();
  for (int32_t u = 0; u < p_.num_ops; ++u) {
    const int32_t from = piece_[u];
    Piece& sender = pieces_[from];
    const double cost = p_.touch[u];
    bool sent = false;
    for (const int32_t r : p_.readers[u]) {
      const int32_t to = piece_[r];
      if (to == from || seen_by_[to] == u) continue;
      seen_by_[to] = u;
      sent = true;
      Piece& reader = pieces_[to];
      ++reader.waits;
      if (!p_.is_cpu[reader.device]) {
        reader.length += cost;
      }
      edges_.push_back({to, sender.first_edge});
      sender.first_edge = static_cast<int32_t>(edges_.size()) - 1;
    }
    if (sent && !p_.is_cpu[sender.device]) {
      sender.length += cost;
    }
  }
}

double PiecesEvaluator::follow() {
  ready_.clear();
  for (int32_t k = 0; k < num_pieces_; ++k) {
    if (pieces_[k].waits == 0) ready_.push_back(k);
  }
  num_followed_ = 0;
  double last = 0;
  while (!ready_.empty()) {
    const Piece& piece = pieces_[ready_.back()];
    ready_.pop_back();
    ++num_followed_;
    const double end = piece.start + piece.length;
    last = std::max(last, end);
    for (int32_t e = piece.first_edge; e >= 0; e = edges_[e].next) {
      const int32_t to = edges_[e].to;
      Piece& reader = pieces_[to];
      reader.start = std::max(reader.start, end);
      if (--reader.waits == 0) ready_.push_back(to);
    }
  }
  return followed() ? last : kInfinity;
}

double PiecesEvaluator::value(std::span<const int32_t> device) {
  if (p_.num_ops <= std::numeric_limits<int16_t>::max()) {
    cut(device, short_depths_);
  } else {
    cut(device, depths_);
  }
  connect();
  return follow();
}

namespace {

// Names the devices whose pieces wait for each other, directly or not.
std::string waiting(const PlanProblem& p, const PiecesEvaluator& e) {
  std::string devices;
  DeviceSet named = 0;
  for (int32_t k = 0; k < e.num_pieces(); ++k) {
    const int32_t d = e.device_of(k);
    if (!e.is_waiting(k) || named.has(d)) continue;
    named |= device_bit(d);
    devices += (devices.empty() ? "" : ", ") + p.costs.devices[d].name;
  }
  return fmt::format(
      "pieces of {} wait for each other, each for a value of another that "
      "is sent when that ends",
      devices);
}

}  // namespace

Evaluation evaluate_pieces(const PlanProblem& p, const PlacePlan& plan) {
  const PiecesProblem problem(p);
  PiecesEvaluator evaluator(problem);
  std::vector<int32_t> device;
  for (const int32_t i : problem.original) {
    device.push_back(plan.device[i]);
  }
  Evaluation e;
  e.value = evaluator.value(device);
  if (!evaluator.followed()) e.violations.push_back(waiting(p, evaluator));
  e.devices.resize(p.num_devices());
  for (int32_t k = 0; k < evaluator.num_pieces(); ++k) {
    e.devices[evaluator.device_of(k)].busy += evaluator.length_of(k);
  }
  for (size_t i = 0; i < plan.device.size(); ++i) {
    e.devices[plan.device[i]].bytes += p.resident_bytes[i];
  }
  return e;
}

}  // namespace berth
