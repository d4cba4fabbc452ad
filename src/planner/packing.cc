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
std::vector<DeviceSet> kinds_of(const LoadProblem& p, bool by_masks) {
  std::vector<DeviceSet> kinds;
  std::vector<const DeviceSet*> masks;  // most are that of the unit before
  for (const DeviceSet& m : p.allowed) {
    if (masks.empty() || m != *masks.back()) masks.push_back(&m);
  }
  const auto key = [&](int32_t d) {
    return std::tuple(p.device_class[d], p.limit[d], p.copies_to[d],
                      p.pays.has(d));
  };
  for (int32_t d = 0; d < p.num_devices(); ++d) {
    const auto kind = std::ranges::find_if(kinds, [&](const DeviceSet& k) {
      const int32_t e = k.first();
      if (key(d) != key(e)) return false;
      return !by_masks || std::ranges::all_of(masks, [&](const DeviceSet* m) {
        return m->has(d) == m->has(e);
      });
    });
    (kind == kinds.end() ? kinds.emplace_back() : *kind) |= device_bit(d);
  }
  return kinds;
}

// The cheapest links by which a copy may arrive at (or leave) a kind.
std::vector<FastLink> best_links(const LoadProblem& p, DeviceSet ends,
                                 bool in) {
  std::vector<FastLink> best;
  for (; ends; ends.drop_first()) {
    const int32_t d = ends.first();
    for (int32_t e = 0; e < p.num_devices(); ++e) {
      if (e == d) continue;
      const LinkNumbers& links = p.routes->links();
      const size_t at = in ? links.link(e, d) : links.link(d, e);
      // A copy that is free for its receiver is free for its sender.
      const bool free = !in && p.copies_to[e] == CopyRule::kFree;
      add_unless_beaten(best,
                        free ? FastLink{0, 0}
                             : FastLink{p.latency_us[at], p.us_per_byte[at]});
    }
  }
  return best;
}

double least(const std::vector<FastLink>& links, double copies, double bytes) {
  double us = links.empty() ? 0 : kInfinity;
  for (const auto& [latency, us_per_byte] : links) {
    us = std::min(us, copies * latency + bytes * us_per_byte);
  }
  return us;
}

double price_of_all(std::span<const DeviceSet> kinds,
                    std::span<const double> prices) {
  double all = 0;
  for (size_t k = 0; k < kinds.size(); ++k) all += kinds[k].count() * prices[k];
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

void add_unless_beaten(std::vector<FastLink>& best, const FastLink& link) {
  const auto beats = [](const FastLink& a, const FastLink& b) {
    return a.latency_us <= b.latency_us && a.us_per_byte <= b.us_per_byte;
  };
  for (const FastLink& other : best) {
    if (beats(other, link)) return;
  }
  std::erase_if(best,
                [&](const FastLink& other) { return beats(link, other); });
  best.push_back(link);
}

PackingProblem::PackingProblem(const LoadProblem& l)
    : kinds(kinds_of(l, true)), pins(l.pins), nets(l.nets) {
  if (kinds.size() > kMostKinds) kinds = kinds_of(l, false);
  for (int32_t u = 0; u < l.num_units(); ++u) {
    for (const DeviceSet& devices : kinds) {
      const int32_t d = devices.first();
      const bool fits = l.allowed[u] & devices && l.bytes[u] <= l.limit[d];
      size.push_back(fits ? l.work_on(u, d) : kInfinity);
    }
  }
  in.assign(static_cast<size_t>(l.num_nets()) * kinds.size(), 0);
  out = in;
  // What devices of a kind pay for nets.
  for (size_t k = 0; k < kinds.size(); ++k) {
    const int32_t d = kinds[k].first();
    // A copy engine makes copies in beside the load.
    const bool pays_in =
        l.by_links ? !comes_early(l.copies_to[d]) : l.pays.has(d);
    const bool pays_out =
        l.by_links ? l.copies_to[d] == CopyRule::kBoth : l.pays.has(d);
    std::vector<FastLink> links_in, links_out;
    if (l.by_links && pays_in) links_in = best_links(l, kinds[k], true);
    if (l.by_links && pays_out) links_out = best_links(l, kinds[k], false);
    for (int32_t n = 0; n < l.num_nets(); ++n) {
      const size_t at = static_cast<size_t>(n) * kinds.size() + k;
      const auto us = [&](const std::vector<FastLink>& links) {
        return l.by_links ? least(links, l.copies[n], l.net_bytes[n])
                          : l.touch_us[n];
      };
      if (pays_in) in[at] = us(links_in);
      if (pays_out) out[at] = us(links_out);
    }
  }
}

double worth_of(std::span<const double> share, std::span<const double> prices) {
  const size_t best = cheapest(share, prices);
  return best == prices.size() ? kInfinity : share[best] * prices[best];
}

// The worth is concave in the prices. Kinds that get more than their share
// become dearer; then each price is set alone.
SumProof prove_by_sum(std::span<const double> share,
                      std::span<const DeviceSet> of) {
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
    for (size_t k = 0; k < kinds; ++k) all += slope[k] /= of[k].count();
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
    const double others = price_of_all(of, prices) - of[k].count() * prices[k];
    const auto worth = [&](double part) {  // of all prices, for this kind
      if (others > 0) prices[k] = others * part / (1 - part) / of[k].count();
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
