#include "cli/planner/chain_pieces.h"

#include <algorithm>
#include <cmath>

#include "base/infinity.h"
#include "place/planner/linear_orders.h"

namespace berth {

namespace {

constexpr int32_t kMostParts = 512;
constexpr int32_t kMostOnCpu = 64;       // consecutive parts
constexpr int32_t kMostInFork = 48;      // parts
constexpr int32_t kMostForForks = 4000;  // ops: with more, orders take too long

// Strongly connected components, in an order in which none precedes what it
// reads (Tarjan, without recursion).
class Components {
 public:
  explicit Components(const Rows<int32_t>& inputs)
      : inputs_(inputs),
        index_(static_cast<size_t>(inputs.size()), -1),
        low_(index_.size()),
        done_(index_.size(), 0) {
    for (int32_t v = 0; v < inputs.size(); ++v) {
      if (index_[v] < 0) visit(v);
    }
  }
  Rows<int32_t> take() { return std::move(found_); }

 private:
  struct Frame {
    int32_t node;
    size_t next;
  };
  void enter(int32_t v) {
    index_[v] = low_[v] = count_++;
    open_.push_back(v);
    frames_.push_back({v, 0});
  }
  void visit(int32_t root) {
    enter(root);
    while (!frames_.empty()) {
      Frame& f = frames_.back();
      if (f.next < inputs_[f.node].size()) {
        const int32_t u = inputs_[f.node][f.next++];
        if (index_[u] < 0) {
          enter(u);
        } else if (!done_[u]) {
          low_[f.node] = std::min(low_[f.node], index_[u]);
        }
        continue;
      }
      if (low_[f.node] == index_[f.node]) close(f.node);
      const int32_t low = low_[f.node];
      frames_.pop_back();
      if (!frames_.empty()) {
        int32_t& above = low_[frames_.back().node];
        above = std::min(above, low);
      }
    }
  }
  void close(int32_t root) {
    std::vector<int32_t> members;
    do {
      members.push_back(open_.back());
      done_[open_.back()] = 1;
      open_.pop_back();
    } while (members.back() != root);
    found_.add(members);
  }

  const Rows<int32_t>& inputs_;
  std::vector<int32_t> index_, low_;
  std::vector<uint8_t> done_;
  std::vector<int32_t> open_;
  std::vector<Frame> frames_;
  int32_t count_ = 0;
  Rows<int32_t> found_;
};

// Adds a row without duplicates and without `self`.
void add_distinct(Rows<int32_t>& rows, std::vector<int32_t>& row,
                  int32_t self) {
  sort_unique(row);
  std::erase(row, self);
  rows.add(row);
  row.clear();
}

}  // namespace

PiecesChain::PiecesChain(const PiecesProblem& p)
    : p_(p),
      block_of_(static_cast<size_t>(p.num_groups)),
      part_of_(static_cast<size_t>(p.num_ops)),
      last_reader_(static_cast<size_t>(p.num_ops)),
      marked_(static_cast<size_t>(p.num_ops)),
      rest_(static_cast<size_t>(p.num_ops)),
      connected_(static_cast<size_t>(p.num_ops)) {
  for (int32_t d = 0; d < p.num_devices; ++d) {
    if (!p.is_cpu[d]) {
      most_bytes_ = std::max(most_bytes_, p.limit[d]);
    }
  }
  find_blocks();
  connect_blocks();
  find_cpus();
  for (int32_t d = 0, first = -1; d < p.num_devices; ++d) {
    if (p.is_cpu[d]) continue;
    if (first < 0) first = d;
    alike_ &= p.limit[d] == p.limit[first];
    for (int32_t v = 0; v < p.num_ops && alike_; ++v) {
      const DeviceSet mask = p.allowed[p.group[v]];
      alike_ = p.time_of(v, d) == p.time_of(v, first) &&
               !mask.has(d) == !mask.has(first);
    }
  }
}

void PiecesChain::find_blocks() {
  Rows<int32_t> inputs;
  std::vector<int32_t> row;
  for (int32_t g = 0; g < p_.num_groups; ++g) {
    for (const int32_t v : p_.ops_of[g]) {
      for (const int32_t u : p_.inputs[v]) {
        row.push_back(p_.group[u]);
      }
    }
    add_distinct(inputs, row, g);
  }
  blocks_ = Components(inputs).take();
  for (int32_t b = 0; b < blocks_.size(); ++b) {
    for (const int32_t g : blocks_[b]) block_of_[g] = b;
  }
}

void PiecesChain::connect_blocks() {
  std::vector<int32_t> row, back;
  const auto block = [&](int32_t op) { return block_of_[p_.group[op]]; };
  for (int32_t b = 0; b < blocks_.size(); ++b) {
    for (const int32_t g : blocks_[b]) {
      for (const int32_t v : p_.ops_of[g]) {
        for (const int32_t r : p_.readers[v]) row.push_back(block(r));
        for (const int32_t u : p_.inputs[v]) back.push_back(block(u));
      }
    }
    add_distinct(after_, row, b);
    add_distinct(before_, back, b);
  }
}

// From the beginning, or from the end backwards, where sources come just before
// their first reader.
std::vector<int32_t> PiecesChain::random_order(StreamRandom& random) const {
  constexpr OrderKind kKinds[] = {OrderKind::kBreadthFirst, OrderKind::kAny,
                                  OrderKind::kDepthFirst,
                                  OrderKind::kDepthFirst};  // twice as likely
  const bool backwards = random.below(2) == 0;
  const OrderKind kind = kKinds[random.below(4)];
  std::vector<int32_t> order = berth::random_order(
      backwards ? before_ : after_, backwards ? after_ : before_, kind, random);
  if (backwards) std::ranges::reverse(order);
  return order;
}

void PiecesChain::lay_out(const std::vector<int32_t>& order) {
  const auto per_part =
      (static_cast<int32_t>(order.size()) + kMostParts - 1) / kMostParts;
  parts_.clear();
  for (size_t k = 0; k < order.size(); ++k) {
    if (static_cast<int32_t>(k) % per_part == 0) parts_.emplace_back();
    for (const int32_t g : blocks_[order[k]]) {
      for (const int32_t v : p_.ops_of[g]) {
        parts_.back().push_back(v);
        part_of_[v] = static_cast<int32_t>(parts_.size()) - 1;
      }
    }
  }
  for (std::vector<int32_t>& ops : parts_) std::sort(ops.begin(), ops.end());
  for (int32_t v = 0; v < p_.num_ops; ++v) {
    int32_t& last = last_reader_[v];
    last = -1;
    for (const int32_t r : p_.readers[v]) {
      last = std::max(last, part_of_[r]);
    }
  }
}

// Adds part `begin` in front of a segment that ends before `end`.
void PiecesChain::grow(Segment& s, int32_t begin, int32_t end) {
  for (const int32_t v : parts_[begin]) {
    if (marked_[v] == end) s.in -= p_.touch[v];
    if (last_reader_[v] >= end) s.out += p_.touch[v];
    for (const int32_t u : p_.inputs[v]) {
      if (part_of_[u] >= begin || marked_[u] == end) continue;
      marked_[u] = end;
      s.in += p_.touch[u];
    }
    s.bytes += p_.bytes[v];
    s.allowed &= p_.allowed[p_.group[v]];
    for (int32_t d = 0; d < p_.num_devices; ++d) {
      s.work[d] += p_.time_of(v, d);
    }
  }
}

// Adds part `begin` in front of ops on CPUs that end before `end`. Returns
// their time together: a CPU stands for as many cores as needed.
double PiecesChain::grow_on_cpu(int32_t begin, int32_t end) {
  double longest = 0;
  const std::vector<int32_t>& ops = parts_[begin];
  for (auto v = ops.rbegin(); v != ops.rend(); ++v) {
    double rest = 0;
    for (const int32_t r : p_.readers[*v]) {
      if (part_of_[r] < end) {
        rest = std::max(rest, rest_[r]);
      }
    }
    const int32_t cpu = cpu_of_[p_.group[*v]];
    rest_[*v] = cpu < 0 ? kInfinity : p_.time_of(*v, cpu) + rest;
    longest = std::max(longest, rest_[*v]);
  }
  return longest;
}

// Finds the fastest allowed CPU per group; -1: none.
void PiecesChain::find_cpus() {
  for (int32_t g = 0; g < p_.num_groups; ++g) {
    double best = kInfinity;
    int32_t cpu = -1;
    for (int32_t d = 0; d < p_.num_devices; ++d) {
      if (!p_.is_cpu[d] || !p_.allowed[g].has(d)) {
        continue;
      }
      double sum = 0;
      for (const int32_t v : p_.ops_of[g]) sum += p_.time_of(v, d);
      if (sum >= best) continue;
      best = sum;
      cpu = d;
    }
    cpu_of_.push_back(cpu);
  }
}

void PiecesChain::extend(const std::vector<int32_t>& devices, int32_t end) {
  const int32_t most = devices.size();
  double longest = 0;
  num_branches_ = 0;
  for (int32_t begin = end - 1;
       begin >= std::max(end - kMostOnCpu, 0) && longest < kInfinity; --begin) {
    longest = std::max(longest, grow_on_cpu(begin, end));
    for (int32_t a = 0; a <= most; ++a) {
      const double cost = step(a, begin).cost + longest;
      if (cost < step(a, end).cost) step(a, end) = {cost, begin, kOnCpu, 0};
    }
    if (p_.num_ops <= kMostForForks && begin >= end - kMostInFork &&
        join(begin, end)) {
      add_forks(devices, begin, end);
    }
  }
  Segment s;
  s.work.assign(p_.num_devices, 0);
  for (int32_t begin = end - 1; begin >= 0; --begin) {
    grow(s, begin, end);
    if (s.bytes > most_bytes_ || s.allowed == 0) break;
    for (int32_t a = 1; a <= most; ++a) {
      const int32_t d = devices[static_cast<size_t>(a) - 1];
      if (s.bytes > p_.limit[d] || !s.allowed.has(d)) continue;
      const double cost = step(a - 1, begin).cost + s.work[d] + s.in + s.out;
      if (cost < step(a, end).cost) step(a, end) = {cost, begin, d, 0};
    }
  }
  for (int32_t a = 1; a <= most; ++a) {
    if (step(a - 1, end).cost <= step(a, end).cost) {
      step(a, end) = {step(a - 1, end).cost, end, kUnused, 0};
    }
  }
}

std::vector<int32_t> PiecesChain::walk_back(int32_t used) {
  std::vector<int32_t> slot(p_.num_groups, kOnCpu);
  const auto put = [&](const std::vector<int32_t>& ops, int32_t at) {
    for (const int32_t v : ops) {
      slot[p_.group[v]] = at;
    }
  };
  int32_t at = parts_.size();
  while (at > 0) {
    const Step s = step(used, at);
    if (s.on == kUnused) {
      --used;
      continue;
    }
    if (s.on == kFork) {
      num_branches_ = 0;
      for (int32_t k = at - 1; k >= s.from; --k) join(k, at);
      find_branches(s.from, at);
      int32_t rest = s.code, most = 0;
      for (const Branch& b : branches_) {
        if (rest % 3 > 0) put(b.ops, used - rest % 3);
        most = std::max(most, rest % 3);
        rest /= 3;
      }
      used -= most;
    } else if (s.on != kOnCpu) {
      --used;
      for (int32_t k = s.from; k < at; ++k) {
        put(parts_[k], used);
      }
    }
    at = s.from;
  }
  return slot;
}

std::vector<int32_t> PiecesChain::best_plan(
    const std::vector<int32_t>& order, const std::vector<int32_t>& devices) {
  lay_out(order);
  std::fill(marked_.begin(), marked_.end(), -1);
  stride_ = parts_.size() + 1;
  steps_.assign((devices.size() + 1) * stride_, {kInfinity, -1, kUnused, 0});
  for (int32_t a = 0; a <= static_cast<int32_t>(devices.size()); ++a) {
    step(a, 0) = {0, 0, kUnused, 0};
  }
  for (int32_t end = 1; end <= static_cast<int32_t>(parts_.size()); ++end) {
    extend(devices, end);
  }
  const int32_t all = devices.size();
  const Step& last = step(all, static_cast<int32_t>(parts_.size()));
  return std::isfinite(last.cost) ? walk_back(all) : std::vector<int32_t>();
}

}  // namespace berth
