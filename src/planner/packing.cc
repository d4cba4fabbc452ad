#include "planner/packing.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/infinity.h"

namespace berth {

namespace {

constexpr size_t kMostKinds = 8;
constexpr int kPriceRounds = 40;
constexpr double kGolden = 0.381966;  // of golden sections

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
      return std::tuple(p.device_class[d], p.limit[d], p.copies_to[d],
                        p.pays.has(d));
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
  const LinkNumbers& links = p.routes->links();
  std::vector<Link> all, best;
  std::vector<uint8_t> seen(p.latency_us.size(), 0);
  for (int32_t d = 0; d < p.num_devices(); ++d) {
    if (!ends.has(d)) continue;
    for (int32_t e = 0; e < p.num_devices(); ++e) {
      if (e == d || (!in && p.copies_to[e] == CopyRule::kFree)) continue;
      const size_t at = in ? links.link(e, d) : links.link(d, e);
      if (seen[at] == 0) all.push_back({p.latency_us[at], p.us_per_byte[at]});
      seen[at] = 1;
    }
    // A copy that is free for its receiver is free for its sender.
    for (int32_t e = 0; e < p.num_devices() && !in; ++e) {
      if (e != d && p.copies_to[e] == CopyRule::kFree) all.push_back({0, 0});
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

class PackingMaker {
 public:
  PackingMaker(const LoadProblem& from, PackingProblem& to)
      : l_(from), p_(to) {}

  void make() {
    p_.kinds = kinds_of(l_, true);
    if (p_.kinds.size() > kMostKinds) p_.kinds = kinds_of(l_, false);
    p_.pins = l_.pins;
    p_.nets = l_.nets;
    p_.size.assign(l_.bytes.size() * p_.kinds.size(), kInfinity);
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
    for (int32_t u = 0; u < l_.num_units(); ++u) {
      const double us = l_.work_on(u, d);
      if (!(l_.allowed[u] & devices) || std::isinf(us) || l_.bytes[u] > limit)
        continue;
      p_.size[static_cast<size_t>(u) * p_.kinds.size() + k] = us;
    }
    for (int32_t n = 0; n < l_.num_nets(); ++n) {
      const size_t at = static_cast<size_t>(n) * p_.kinds.size() + k;
      if (!l_.by_links && l_.pays.has(d)) {
        p_.in[at] = p_.out[at] = l_.touch_us[n];
      }
    }
    if (l_.by_links) add_links(k, d);
  }

  void add_links(size_t k, int32_t d) {
    const DeviceSet devices = p_.kinds[k].devices;
    // A copy engine makes copies in beside the load.
    const bool pays_in = !comes_early(l_.copies_to[d]);
    const bool pays_out = l_.copies_to[d] == CopyRule::kBoth;
    const std::vector<Link> in = best_links(l_, devices, true);
    const std::vector<Link> out = best_links(l_, devices, false);
    for (int32_t n = 0; n < l_.num_nets(); ++n) {
      const size_t at = static_cast<size_t>(n) * p_.kinds.size() + k;
      const double copies = l_.copies[n], bytes = l_.net_bytes[n];
      if (pays_in) p_.in[at] = least(in, copies, bytes);
      if (pays_out) p_.out[at] = least(out, copies, bytes);
    }
  }

  const LoadProblem& l_;
  PackingProblem& p_;
};

double price_of_all(std::span<const PackingKind> kinds,
                    std::span<const double> prices) {
  double all = 0;
  for (size_t k = 0; k < kinds.size(); ++k) all += kinds[k].count * prices[k];
  return all;
}

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

PackingProblem::PackingProblem(const LoadProblem& problem) {
  PackingMaker(problem, *this).make();
}

double worth_of(std::span<const double> share, std::span<const double> prices) {
  const size_t best = cheapest(share, prices);
  return best == prices.size() ? kInfinity : share[best] * prices[best];
}

// The worth is concave in the prices. Kinds that get more than their share
// become dearer; then each price is set alone.
SumProof prove_by_sum(std::span<const double> share,
                      std::span<const PackingKind> of) {
  const size_t kinds = of.size();
  SumProof best;
  std::vector<double> prices(kinds, 1), slope;
  const auto try_prices = [&](std::vector<double> at) {
    const double all = price_of_all(of, at);
    if (!(all > 0)) return 0.0;
    for (double& p : at) p /= all;
    const double worth = worth_and_slope(share, at, slope);
    if (worth > best.worth || best.prices.empty()) {
      best = {worth, std::move(at)};
    }
    return worth;
  };
  try_prices(prices);
  if (kinds == 1 || !(best.worth > 0) || std::isinf(best.worth)) return best;
  for (int round = 1; round <= kPriceRounds; ++round) {
    double all = 0;
    for (size_t k = 0; k < kinds; ++k) all += slope[k] /= of[k].count;
    for (size_t k = 0; k < kinds; ++k) {
      const double part = slope[k] / all * static_cast<double>(kinds);
      prices[k] *= std::exp((std::min(part, 4.0) - 1) / round);
    }
    const double most = std::ranges::max(prices);
    for (double& p : prices) p = std::max(p / most, 1e-9);
    try_prices(prices);
  }
  for (size_t k = 0; k < kinds && kinds <= kMostKinds; ++k) {
    prices = best.prices;
    const double others = price_of_all(of, prices) - of[k].count * prices[k];
    const auto worth = [&](double part) {  // of all prices, for this kind
      if (others > 0) prices[k] = others * part / (1 - part) / of[k].count;
      return try_prices(prices);
    };
    double low = 0, high = 1 - 1e-9;
    for (int round = 0; round < kPriceRounds; ++round) {
      const double a = low + kGolden * (high - low);
      const double b = high - kGolden * (high - low);
      if (worth(a) < worth(b)) {
        low = a;
      } else {
        high = b;
      }
    }
  }
  return best;
}

}  // namespace berth
