// The simulator's loop: what ended lets things start, copies first.

#include "place/simulate.h"

#include <algorithm>

#include "place/simulate_check.h"

namespace berth {

namespace {

using Kind = SimulatedGraph::Kind;

// Ranges of busy things, in this order: computing on device d, the copy engine
// of device d, shared group g.
struct Resources {
  int32_t devices = 0;
  int32_t compute(int32_t d) const { return d; }
  int32_t copy(int32_t d) const { return devices + d; }
  int32_t shared(int32_t group) const { return 2 * devices + group; }
};

// One copy of a value.
struct Move {
  int32_t value = -1, from = -1, to = -1;
  int32_t next = -1;  // another copy of this value
  double ready = 0;
  int32_t result = -1;              // number of the transfer, once started
  int32_t wants[3] = {-1, -1, -1};  // resources; the first is its destination's
};

// What ends next: an op, or a move.
struct Running {
  double end = 0;
  int32_t node = -1, move = -1;
  // Of an op that moves bytes over a bus: how many per microsecond when alone,
  // and its progress.
  int32_t bus = -1;
  double rate = 0, speed = 1;
};

}  // namespace

class Simulator::Impl {
 public:
  Impl(const SimulatedGraph& graph, const CostTable& costs)
      : g_(graph), costs_(costs) {
    num_devices_ = static_cast<int32_t>(costs.devices.size());
    at_.devices = num_devices_;
    int32_t groups = 0;
    for (const DeviceCost& d : costs.devices) {
      copies_compute_ |= d.copies != CopyRule::kOverlap;
    }
    for (const LinkCost& l : costs.links) {
      groups = std::max(groups, l.shared + 1);
    }
    busy_.resize(static_cast<size_t>(2 * num_devices_ + groups));
    held_.resize(busy_.size());
    queues_.resize(static_cast<size_t>(num_devices_));
    missing_from_.reserve(static_cast<size_t>(g_.num_nodes()));
    for (int32_t i = 0; i < g_.num_nodes(); ++i) {
      missing_from_.push_back(g_.reads[i].size() + g_.controls[i].size());
      num_ops_ += g_.kind[i] == Kind::kOp;
    }
  }

  const Simulation& run(const SimulatedPlan& plan) {
    plan_ = &plan;
    reset();
    check_plan(g_, costs_, plan, in_order_);
    for (int32_t i = 0; i < g_.num_nodes(); ++i) {
      if (missing_[i] == 0 && g_.kind[i] != Kind::kOp) settled_.push_back(i);
    }
    settle();
    while (true) {
      start_moves();
      start_ops();
      if (running_.empty()) break;
      end_next();
      settle();
    }
    if (ended_ops_ < num_ops_) fail_deadlock(g_, costs_, plan, position_);
    note_transfer_nodes();
    result_.step_us = now_;
    return result_;
  }

 private:
  // A queue of moves to one device; before `first` they have started.
  struct Queue {
    std::vector<int32_t> moves;
    size_t first = 0;
    bool empty() const { return first == moves.size(); }
  };

  int32_t device(int32_t node) const { return plan_->device[node]; }

  void reset() {
    const auto n = static_cast<size_t>(g_.num_nodes());
    const auto d = static_cast<size_t>(num_devices_);
    result_.start_us.assign(n, 0);
    result_.end_us.assign(n, 0);
    result_.transfers.clear();
    result_.busy_us.assign(d, 0);
    result_.copy_busy_us.assign(d, 0);
    result_.peak_bytes.assign(d, 0);
    result_.sent_bytes = 0;
    missing_ = missing_from_;
    position_.assign(d, 0);
    busy_.assign(busy_.size(), 0);
    for (Queue& q : queues_) {
      q.moves.clear();
      q.first = 0;
    }
    moves_.clear();
    first_move_.assign(g_.producer.size(), -1);
    buffer_of_.assign(g_.producer.size(), -1);
    uses_.assign(g_.producer.size(), 0);
    live_.assign(d, 0);
    held_.assign(held_.size(), 0);
    running_.clear();
    settled_.clear();
    try_moves_ = true;
    ended_ops_ = 0;
    now_ = 0;
  }

  // --- Memory. Buffers: values at home, by number; then moves.

  int32_t buffer_of_move(int32_t m) const {
    return static_cast<int32_t>(g_.producer.size()) + m;
  }
  // The buffer in which a device reads a value; -1: nobody counts it.
  int32_t buffer_at(int32_t value, int32_t d) const {
    if (g_.everywhere[value] && device(g_.producer[value]) != d) return -1;
    if (device(g_.producer[value]) == d) return buffer_of_[value];
    int32_t m = first_move_[value];
    while (moves_[m].to != d) m = moves_[m].next;
    return buffer_of_move(m);
  }
  int32_t home_of(int32_t buffer) const {
    const auto v = static_cast<int32_t>(g_.producer.size());
    return buffer < v ? device(g_.producer[buffer]) : moves_[buffer - v].to;
  }
  int64_t bytes_in(int32_t buffer) const {
    const auto v = static_cast<int32_t>(g_.producer.size());
    const int32_t value = buffer < v ? buffer : moves_[buffer - v].value;
    return bytes_of(value);
  }
  // The costs number values as the graph does.
  int64_t bytes_of(int32_t value) const { return costs_.bytes.item(value); }
  void grow(int32_t d, int64_t bytes) {
    live_[d] += bytes;
    result_.peak_bytes[d] = std::max(result_.peak_bytes[d], live_[d]);
  }
  void release(int32_t buffer) {
    if (buffer < 0 || --uses_[buffer] > 0) return;
    live_[home_of(buffer)] -= bytes_in(buffer);
  }
  int64_t workspace(int32_t node) const {
    if (costs_.workspace.empty()) return 0;
    return costs_.workspace[static_cast<size_t>(node) * costs_.classes.size() +
                            costs_.devices[device(node)].device_class];
  }

  // --- What ends.

  void end_next() {
    double next = running_[0].end;
    for (const Running& r : running_) next = std::min(next, r.end);
    now_ = next;
    for (size_t k = 0; k < running_.size();) {
      if (running_[k].end > now_) {
        ++k;
        continue;
      }
      const Running r = running_[k];
      running_[k] = running_.back();
      running_.pop_back();
      r.node >= 0 ? end_op(r.node) : end_move(r.move);
      if (r.bus >= 0) share_bus(r.bus);
    }
  }

  // Somebody began or ended to use a bus: the others get more, or less.
  void share_bus(int32_t bus) {
    double wanted = 0;
    for (const Running& r : running_) {
      if (r.bus == bus) wanted += r.rate;
    }
    const double given = costs_.buses[bus].bytes_per_us;
    const double speed = wanted > given ? given / wanted : 1;
    for (Running& r : running_) {
      if (r.bus != bus || r.speed == speed) continue;
      r.end = now_ + (r.end - now_) * r.speed / speed;
      r.speed = speed;
    }
  }

  void end_op(int32_t node) {
    busy_[at_.compute(device(node))] = 0;
    try_moves_ |= copies_compute_;
    result_.end_us[node] = now_;
    result_.busy_us[device(node)] += now_ - result_.start_us[node];
    ++ended_ops_;
    live_[device(node)] -= workspace(node);
    publish(node);
  }

  void end_move(int32_t m) {
    for (int32_t r : moves_[m].wants) {
      if (r >= 0) busy_[r] = 0;
    }
    try_moves_ = true;
    const int32_t value = moves_[m].value, to = moves_[m].to;
    for (int32_t r : g_.readers[value]) {
      if (device(r) == to) arrive(r);
    }
    release(buffer_of_[value]);
  }

  void arrive(int32_t node) {
    if (--missing_[node] == 0 && g_.kind[node] != Kind::kOp) {
      settled_.push_back(node);
    }
  }

  // Sources and aliases are done as soon as they can be.
  void settle() {
    while (!settled_.empty()) {
      const int32_t node = settled_.back();
      settled_.pop_back();
      if (g_.kind[node] == Kind::kTransfer) continue;
      result_.start_us[node] = result_.end_us[node] = now_;
      if (g_.kind[node] == Kind::kSource) {
        for (int32_t v : g_.values[node]) add_source(v);
        grow(device(node), g_.variable_bytes[node]);
      }
      publish(node);
    }
  }

  void add_source(int32_t value) {
    const int32_t home = device(g_.producer[value]);
    buffer_of_[value] = value;
    uses_[value] = 1;
    const int64_t bytes = bytes_of(value);
    grow(home, bytes);
    if (!g_.everywhere[value] || bytes == 0) return;
    // One copy per device that reads it.
    seen_.assign(static_cast<size_t>(num_devices_), 0);
    for (int32_t r : g_.readers[value]) {
      const int32_t d = device(r);
      if (d == home || seen_[d]) continue;
      seen_[d] = 1;
      grow(d, bytes);
    }
  }

  // The outputs of a node are there: for its own device, and to be sent.
  void publish(int32_t node) {
    const int32_t d = device(node);
    for (int32_t v : g_.values[node]) {
      if (g_.alias_of[node] >= 0) {
        buffer_of_[v] = buffer_at(g_.alias_of[node], d);
      }
      const int32_t buffer = buffer_of_[v];
      int32_t uses = g_.lives_on[v];
      for (int32_t r : g_.readers[v]) {
        if (device(r) == d) {
          ++uses;
          arrive(r);
        } else if (g_.everywhere[v]) {
          arrive(r);
        } else {
          uses += send(v, d, device(r));
        }
      }
      if (buffer < 0) continue;
      uses_[buffer] += uses;
      if (g_.kind[node] == Kind::kOp && uses == 0) {
        live_[d] -= bytes_in(buffer);
      }
    }
    for (int32_t v : g_.reads[node]) release(buffer_at(v, d));
    for (int32_t f : g_.followers[node]) arrive(f);
  }

  // Queues a copy unless there is one. Returns how many are new.
  int32_t send(int32_t value, int32_t from, int32_t to) {
    for (int32_t m = first_move_[value]; m >= 0; m = moves_[m].next) {
      if (moves_[m].to == to) return 0;
    }
    const auto number = static_cast<int32_t>(moves_.size());
    Move m;
    m.value = value;
    m.from = from;
    m.to = to;
    m.ready = now_;
    m.next = first_move_[value];
    first_move_[value] = number;
    const LinkCost& link = costs_.link(from, to);
    const bool beside = costs_.devices[to].copies == CopyRule::kOverlap;
    m.wants[0] = beside ? at_.copy(to) : at_.compute(to);
    if (costs_.devices[from].copies == CopyRule::kBoth) {
      m.wants[1] = at_.compute(from);
    }
    if (link.shared >= 0) m.wants[2] = at_.shared(link.shared);
    moves_.push_back(m);
    uses_.push_back(0);
    // By readiness, then by value.
    std::vector<int32_t>& queue = queues_[to].moves;
    size_t k = queue.size();
    queue.push_back(number);
    while (k > queues_[to].first && moves_[queue[k - 1]].ready == now_ &&
           moves_[queue[k - 1]].value > value) {
      queue[k] = queue[k - 1];
      queue[--k] = number;
    }
    try_moves_ = true;
    return 1;
  }

  // --- What starts.

  void start_moves() {
    if (!try_moves_) return;
    try_moves_ = false;
    std::fill(held_.begin(), held_.end(), 0);
    heads_.clear();
    for (Queue& q : queues_) {
      if (!q.empty()) heads_.push_back(q.moves[q.first]);
    }
    std::sort(heads_.begin(), heads_.end(), [&](int32_t a, int32_t b) {
      const Move &x = moves_[a], &y = moves_[b];
      if (x.ready != y.ready) return x.ready < y.ready;
      return x.value != y.value ? x.value < y.value : x.to < y.to;
    });
    for (const int32_t m : heads_) {
      const Move& move = moves_[m];
      if (busy_[move.wants[0]] || held_[move.wants[0]]) continue;
      bool free = true;
      for (int32_t r : move.wants) free &= r < 0 || !(busy_[r] || held_[r]);
      for (int32_t r : move.wants) {
        if (r >= 0) (free ? busy_ : held_)[r] = 1;
      }
      if (free) start_move(m);
    }
  }

  void start_move(int32_t m) {
    Move& move = moves_[m];
    ++queues_[move.to].first;
    const int64_t bytes = bytes_of(move.value);
    const double us = costs_.link(move.from, move.to).time_us(bytes);
    move.result = static_cast<int32_t>(result_.transfers.size());
    result_.transfers.push_back(
        {g_.value(move.value), move.from, move.to, bytes, now_, now_ + us});
    result_.copy_busy_us[move.to] += us;
    result_.sent_bytes += bytes;
    running_.push_back({now_ + us, -1, m});
    int32_t uses = 0;
    for (int32_t r : g_.readers[move.value]) uses += device(r) == move.to;
    uses_[buffer_of_move(m)] = uses;
    grow(move.to, bytes);
  }

  void start_ops() {
    for (int32_t d = 0; d < num_devices_; ++d) {
      const std::vector<int32_t>& order = plan_->order[d];
      size_t& at = position_[d];
      while (at < order.size() && g_.kind[order[at]] != Kind::kOp) ++at;
      if (at == order.size() || busy_[at_.compute(d)] ||
          held_[at_.compute(d)] || missing_[order[at]] > 0) {
        continue;
      }
      start_op(order[at++], d);
    }
  }

  void start_op(int32_t node, int32_t d) {
    const double us = costs_.time(node, d).us;
    busy_[at_.compute(d)] = 1;
    result_.start_us[node] = now_;
    running_.push_back({now_ + us, node, -1});
    const int32_t bus = costs_.devices[d].bus;
    if (bus >= 0 && us > 0 && !costs_.bus_bytes.empty() &&
        costs_.bus_bytes[node] > 0) {
      running_.back().bus = bus;
      running_.back().rate = costs_.bus_bytes[node] / us;
      share_bus(bus);
    }
    int64_t bytes = workspace(node);
    for (int32_t v : g_.values[node]) {
      buffer_of_[v] = v;
      bytes += bytes_of(v);
    }
    grow(d, bytes);
  }

  // --- The end.

  void note_transfer_nodes() {
    for (int32_t i = 0; i < g_.num_nodes(); ++i) {
      if (g_.kind[i] != Kind::kTransfer) continue;
      ValueRef v = (*g_.graph)[i].inputs[0];
      while (g_.kind[v.node] == Kind::kTransfer) {
        v = (*g_.graph)[v.node].inputs[0];
      }
      int32_t m = first_move_[g_.values.begin_of(v.node) + v.output];
      while (m >= 0 && moves_[m].to != device(i)) m = moves_[m].next;
      if (m < 0) continue;
      result_.start_us[i] = result_.transfers[moves_[m].result].start_us;
      result_.end_us[i] = result_.transfers[moves_[m].result].end_us;
    }
  }

  const SimulatedGraph& g_;
  const CostTable& costs_;
  const SimulatedPlan* plan_ = nullptr;
  Simulation result_;
  int32_t num_devices_ = 0, num_ops_ = 0;
  Resources at_;
  bool copies_compute_ = false;       // some copies keep devices busy
  std::vector<size_t> missing_from_;  // per node, before anything happened

  double now_ = 0;
  int32_t ended_ops_ = 0;
  bool try_moves_ = true;          // something changed that moves wait for
  std::vector<size_t> missing_;    // per node: inputs and controls to come
  std::vector<size_t> position_;   // per device, in its order
  std::vector<uint8_t> in_order_;  // per node: scratch of check_plan
  std::vector<uint8_t> busy_;      // per resource
  std::vector<uint8_t> held_;      // per resource: a copy waits with it
  std::vector<uint8_t> seen_;      // per device
  std::vector<Running> running_;
  std::vector<int32_t> settled_;  // nodes without time that can be done
  std::vector<Move> moves_;
  std::vector<int32_t> first_move_;  // per value
  std::vector<Queue> queues_;        // per destination
  std::vector<int32_t> heads_;
  std::vector<int32_t> buffer_of_;  // per value, at home
  std::vector<int32_t> uses_;       // per buffer, to come
  std::vector<int64_t> live_;       // per device, bytes now
};

Simulator::Simulator(const SimulatedGraph& graph, const CostTable& costs)
    : impl_(std::make_unique<Impl>(graph, costs)) {}
Simulator::~Simulator() = default;

const Simulation& Simulator::run(const SimulatedPlan& plan) {
  return impl_->run(plan);
}

Simulation simulate(const SimulatedGraph& graph, const CostTable& costs,
                    const SimulatedPlan& plan) {
  return Simulator(graph, costs).run(plan);
}

}  // namespace berth
