#include "place/planner/packing.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/infinity.h"
#include "place/planner/simplex.h"

namespace berth {

namespace {

constexpr size_t kMostKinds = 8;
constexpr int kMostCuts = 60;

// Devices that pay alike and allow the same units; if that gives too many
// kinds, the latter is dropped, which only allows more.
std::vector<PackingKind> kinds_of(const LoadProblem& p, bool by_masks) {
  std::vector<PackingKind> kinds;
  std::vector<const DeviceSet*> masks;  // most are that of the unit before
  for (const DeviceSet& m : p.allowed) {
    if (masks.empty() || m != *masks.back()) masks.push_back(&m);
  }
  const auto alike = [&](int32_t a, int32_t b) {
    const auto key = [&](int32_t d) {
      const int32_t copies = p.receiver[d] < 0 ? 0 : p.receiver[d] == d ? 1 : 2;
      return std::tuple(p.device_class[d], p.limit[d], copies, p.pays.has(d),
                        p.sender_pays.has(d));
    };
    if (key(a) != key(b)) return false;
    if (!by_masks) return true;
    return std::all_of(masks.begin(), masks.end(), [&](const DeviceSet* m) {
      return m->has(a) == m->has(b);
    });
  };
  for (int32_t d = 0; d < p.num_devices(); ++d) {
    const auto kind = std::find_if(
        kinds.begin(), kinds.end(),
        [&](const PackingKind& k) { return alike(k.devices.first(), d); });
    if (kind == kinds.end()) {
      kinds.push_back({device_bit(d), 1});
    } else {
      kind->devices |= device_bit(d);
      ++kind->count;
    }
  }
  return kinds;
}

// The cheapest links by which a copy may arrive (or leave), per kind: those
// that no other beats in both numbers.
using Link = std::pair<double, double>;  // latency, us per byte

std::vector<Link> best_links(const LoadProblem& p, DeviceSet ends, bool in) {
  std::vector<Link> all, best;
  std::vector<uint8_t> seen(p.latency_us.size(), 0);
  for (int32_t d = 0; d < p.num_devices(); ++d) {
    if (!ends.has(d)) continue;
    for (int32_t e = 0; e < p.num_devices(); ++e) {
      if (e == d || (!in && p.receiver[e] < 0)) continue;
      const size_t at = in ? p.links.link(e, d) : p.links.link(d, e);
      if (seen[at] == 0) all.push_back({p.latency_us[at], p.us_per_byte[at]});
      seen[at] = 1;
    }
    // A copy that is free for its receiver is free for its sender.
    for (int32_t e = 0; e < p.num_devices() && !in; ++e) {
      if (e != d && p.receiver[e] < 0) all.push_back({0, 0});
    }
  }
  std::sort(all.begin(), all.end());
  for (const Link& link : all) {
    if (best.empty() || link.second < best.back().second) best.push_back(link);
  }
  return best;
}

double least(const std::vector<Link>& links, double copies, double bytes) {
  double us = links.empty() ? 0 : kInfinity;
  for (const auto& [latency, us_per_byte] : links) {
    us = std::min(us, copies * latency + bytes * us_per_byte);
  }
  return us;
}

class Maker {
 public:
  Maker(const LoadProblem& from, PackingProblem& to) : l_(from), p_(to) {}

  void make() {
    p_.kinds = kinds_of(l_, true);
    if (p_.kinds.size() > kMostKinds) p_.kinds = kinds_of(l_, false);
    p_.bytes = l_.bytes;
    p_.pins = l_.pins;
    p_.nets = l_.nets;
    p_.size.assign(p_.bytes.size() * p_.kinds.size(), kInfinity);
    const size_t costs = static_cast<size_t>(l_.num_nets()) * p_.kinds.size();
    p_.in.assign(costs, 0);
    p_.out.assign(costs, 0);
    for (size_t k = 0; k < p_.kinds.size(); ++k) add_kind(k);
  }

 private:
  void add_kind(size_t k) {
    const DeviceSet devices = p_.kinds[k].devices;
    const int32_t d = devices.first();
    const double limit = l_.limit[d];
    p_.limit.push_back(limit);
    const double memory =
        std::isinf(limit) ? 0 : std::clamp(p_.weights.memory, 0.0, 1.0);
    const bool engine = l_.receiver[d] >= l_.num_devices();
    const double copies =
        engine ? std::clamp(p_.weights.copies, 0.0, 1.0) * (1 - memory) : 0;
    const double work = 1 - memory - copies;
    const double per_byte =
        memory > 0 ? memory * p_.weights.memory_at / limit : 0;
    for (int32_t u = 0; u < l_.num_units(); ++u) {
      const double us = l_.work_on(u, d);
      if (!(l_.allowed[u] & devices) || std::isinf(us) || l_.bytes[u] > limit)
        continue;
      p_.size[static_cast<size_t>(u) * p_.kinds.size() + k] =
          work * us + per_byte * l_.bytes[u];
    }
    for (int32_t n = 0; n < l_.num_nets(); ++n) {
      const size_t at = static_cast<size_t>(n) * p_.kinds.size() + k;
      if (!l_.by_links && l_.pays.has(d)) {
        p_.in[at] = p_.out[at] = work * l_.touch_us[n];
      }
    }
    if (l_.by_links) add_links(k, d, engine ? copies : work, work);
  }

  void add_links(size_t k, int32_t d, double in_weight, double out_weight) {
    const DeviceSet devices = p_.kinds[k].devices;
    const bool pays_in = l_.receiver[d] >= 0;
    const bool pays_out = l_.sender_pays.has(d);
    const std::vector<Link> in = best_links(l_, devices, true);
    const std::vector<Link> out = best_links(l_, devices, false);
    for (int32_t n = 0; n < l_.num_nets(); ++n) {
      const size_t at = static_cast<size_t>(n) * p_.kinds.size() + k;
      const double copies = l_.copies[n], bytes = l_.net_bytes[n];
      if (pays_in) p_.in[at] = in_weight * least(in, copies, bytes);
      if (pays_out) p_.out[at] = out_weight * least(out, copies, bytes);
    }
  }

  const LoadProblem& l_;
  PackingProblem& p_;
};

// Returns the kind on which a unit is worth least; prices.size(): it fits none.
size_t cheapest(std::span<const double> share, std::span<const double> prices) {
  size_t best = prices.size();
  double least = kInfinity;
  for (size_t k = 0; k < prices.size(); ++k) {
    if (std::isinf(share[k]) || share[k] * prices[k] >= least) continue;
    least = share[k] * prices[k];
    best = k;
  }
  return best;
}

// What units take of their cheapest kinds: the slope of the worth.
double worth_and_slope(std::span<const double> share,
                       std::span<const double> prices,
                       std::vector<double>& slope) {
  const size_t kinds = prices.size();
  slope.assign(kinds, 0);
  double sum = 0;
  for (size_t at = 0; at < share.size(); at += kinds) {
    const size_t best = cheapest(share.subspan(at, kinds), prices);
    if (best == kinds) return kInfinity;
    slope[best] += share[at + best];
    sum += share[at + best] * prices[best];
  }
  return sum;
}

}  // namespace

PackingProblem::PackingProblem(const LoadProblem& problem,
                               const PackingWeights& weights)
    : weights(weights) {
  Maker(problem, *this).make();
}

double price_of_all(std::span<const PackingKind> kinds,
                    std::span<const double> prices) {
  double all = 0;
  for (size_t k = 0; k < kinds.size(); ++k) all += kinds[k].count * prices[k];
  return all;
}

double load_of(const PackingProblem& p, size_t kind,
               std::span<const int32_t> units) {
  std::vector<uint8_t> in(p.num_units(), 0);
  std::vector<int32_t> nets;
  double load = 0;
  for (const int32_t u : units) {
    in[u] = 1;
    load += p.size_on(u, kind);
    nets.insert(nets.end(), p.nets[u].begin(), p.nets[u].end());
  }
  sort_unique(nets);
  for (const int32_t n : nets) {
    const auto pins = p.pins[n];
    const bool head = in[pins[0]] != 0;
    const bool others_differ =
        std::any_of(pins.begin() + 1, pins.end(),
                    [&](int32_t u) { return (in[u] != 0) != head; });
    if (others_differ) load += head ? p.out_of(n, kind) : p.in_of(n, kind);
  }
  return load;
}

double worth_of(std::span<const double> share, std::span<const double> prices) {
  const size_t best = cheapest(share, prices);
  return best == prices.size() ? kInfinity : share[best] * prices[best];
}

// The worth is concave in the prices: cutting planes.
SumProof prove_by_sum(std::span<const double> share,
                      std::span<const PackingKind> of) {
  const size_t kinds = of.size();
  SumProof best;
  std::vector<double> prices(kinds, 1), slope;
  prices.assign(kinds, 1 / price_of_all(of, prices));
  best.worth = worth_and_slope(share, prices, slope);
  best.prices = prices;
  if (kinds == 1 || std::isinf(best.worth)) return best;

  // Variables: a price per kind, and the worth.
  std::vector<double> objective(kinds + 1, 0), lower(kinds + 1, 0), upper;
  double most = 0;
  for (size_t k = 0; k < kinds; ++k) {
    upper.push_back(1.0 / of[k].count);
  }
  for (size_t at = 0; at < share.size(); at += kinds) {
    most += worth_of(share.subspan(at, kinds), upper);
  }
  if (!(most > 0)) return best;
  objective.back() = 1;
  upper.push_back(most);
  RowLp lp(objective, lower, upper);
  std::vector<std::pair<int32_t, double>> row;
  for (size_t k = 0; k < kinds; ++k) {
    row.push_back({static_cast<int32_t>(k), of[k].count});
  }
  lp.add_row(row, 1);
  for (int cut = 0; cut < kMostCuts; ++cut) {
    row.clear();
    for (size_t k = 0; k < kinds; ++k) {
      row.push_back({static_cast<int32_t>(k), -slope[k]});
    }
    row.push_back({static_cast<int32_t>(kinds), 1});
    lp.add_row(row, 0);
    if (!lp.solve(1000)) break;
    const std::vector<double> x = lp.x();
    for (size_t k = 0; k < kinds; ++k) prices[k] = std::max(x[k], 0.0);
    const double sum = price_of_all(of, prices);
    if (!(sum > 0)) break;
    for (double& p : prices) p /= sum;
    const double worth = worth_and_slope(share, prices, slope);
    if (worth > best.worth) {
      best.worth = worth;
      best.prices = prices;
    }
    if (lp.value() <= best.worth * (1 + 1e-7)) break;
  }
  return best;
}

}  // namespace berth
