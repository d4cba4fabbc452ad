#include "planner/coarsen.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "place/disjoint_sets.h"

namespace berth {

namespace {

// Clusters as a forest, with their totals.
class Merger {
 public:
  Merger(const LoadProblem& p, double cap)
      : p_(p), sets_(p.bytes.size()), bytes_(p.bytes), allowed_(p.allowed) {
    double all = 0;
    for (int32_t u = 0; u < p.num_units(); ++u) {
      const auto of =
          std::span(p.work).subspan(u * p.num_classes, p.num_classes);
      const double least = std::ranges::min(of);
      work_.push_back(std::isinf(least) ? 0 : least);
      all += work_.back();
    }
    max_work_ = cap * all / static_cast<double>(p.limit.size());
    max_bytes_ =
        std::min(1.0, cap) * *std::max_element(p.limit.begin(), p.limit.end());
  }

  int32_t root(int32_t u) { return sets_.find(u); }

  void merge(int32_t a, int32_t b) {
    a = root(a);
    b = root(b);
    if (a == b || !(allowed_[a] & allowed_[b])) return;
    if (max_work_ <= 0 || work_[a] + work_[b] > max_work_) return;
    if (bytes_[a] + bytes_[b] > max_bytes_) return;
    sets_.join(a, b);
    work_[a] += work_[b];
    bytes_[a] += bytes_[b];
    allowed_[a] &= allowed_[b];
  }

 private:
  const LoadProblem& p_;
  DisjointSets sets_;
  std::vector<double> work_, bytes_;
  std::vector<DeviceSet> allowed_;
  double max_work_ = 0, max_bytes_ = 0;
};

// The savings when a net is inside one cluster.
std::vector<double> prices_of(const LoadProblem& p) {
  if (!p.by_links) return p.touch_us;
  double latency = 0, per_byte = 0;
  for (int32_t from = 0; from < p.num_devices(); ++from) {
    for (int32_t to = 0; to < p.num_devices(); ++to) {
      const size_t link = p.routes->links().link(from, to);
      latency += p.latency_us[link];
      per_byte += p.us_per_byte[link];
    }
  }
  std::vector<double> prices;
  for (int32_t n = 0; n < p.num_nets(); ++n) {
    prices.push_back(p.copies[n] * latency + p.net_bytes[n] * per_byte);
  }
  return prices;
}

// Merges along nets, the costliest first.
void merge_nets(const LoadProblem& p, StreamRandom& random, Merger& merger) {
  std::vector<double> price = prices_of(p);
  for (double& us : price) us *= 0.5 + random.uniform();
  std::vector<int32_t> order(price.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](int32_t a, int32_t b) {
    return price[a] != price[b] ? price[a] > price[b] : a < b;
  });
  for (const int32_t n : order) {
    const auto pins = p.pins[n];
    for (size_t k = 1; k < pins.size(); ++k) merger.merge(pins[0], pins[k]);
  }
}

Clusters clusters_of(const LoadProblem& p, Merger& merger) {
  Clusters c;
  c.of_unit.assign(p.bytes.size(), -1);
  for (int32_t u = 0; u < p.num_units(); ++u) {
    int32_t& number = c.of_unit[merger.root(u)];
    if (number < 0) number = c.count++;
    c.of_unit[u] = number;
  }
  return c;
}

}  // namespace

Clusters cluster_units(const LoadProblem& p, double cap, StreamRandom& random) {
  Merger merger(p, cap);
  merge_nets(p, random, merger);
  return clusters_of(p, merger);
}

Clusters shrink(const LoadProblem& p, int32_t count, StreamRandom& random) {
  // Clusters end up half full or more.
  double cap = 1.5 * static_cast<double>(p.limit.size()) / count;
  for (;; cap *= 1.5) {
    Merger merger(p, cap);
    merge_nets(p, random, merger);
    Clusters c = clusters_of(p, merger);
    if (c.count <= count || cap >= 0.25) return c;
    // Units that no net connects: by number, as the user wrote them.
    for (int32_t u = 1; u < p.num_units(); ++u) merger.merge(u - 1, u);
    c = clusters_of(p, merger);
    if (c.count <= count) return c;
  }
}

std::vector<int32_t> project(const Clusters& clusters,
                             std::span<const int32_t> device) {
  std::vector<int32_t> fine;
  for (const int32_t c : clusters.of_unit) fine.push_back(device[c]);
  return fine;
}

}  // namespace berth
