// Proves by sums of bytes that no plan keeps all limits, with few ops that show
// it.
//
// A conflict is a set of ops and a test that fails for it. With more ops the
// test only fails more, so dropping the ops it fails without ends at a set in
// which each op is needed.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/bytes_text.h"
#include "planner/models.h"
#include "planner/plan_view.h"
#include "planner/problem.h"

namespace berth {

namespace {

using Kind = SimulatedGraph::Kind;
using Ops = std::vector<int32_t>;

// Bytes that every plan needs, by the rules of the model, each counted so that
// no plan needs less.
class MemoryNeeds {
 public:
  explicit MemoryNeeds(const PlanProblem& p) : p_(p) {
    const SimulatedGraph& g = p.graph;
    kept = held = p.resident_bytes;
    if (p.model == PlanModel::kStep) beside_.resize(p.num_ops());
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      held[i] += static_cast<double>(g.variable_bytes[i]);
      kept[i] = held[i];
      if (p.model != PlanModel::kStep) continue;
      const bool source = g.kind[i] == Kind::kSource;
      for (const int32_t v : g.values[i]) {
        if (source) held[i] += p.costs.bytes.item(v);
        if (source || (p.takes_time(i) && g.lives_on[v])) {
          kept[i] += p.costs.bytes.item(v);
        }
      }
      if (p.takes_time(i)) beside_[i] = values_of(i);
    }
  }

  // Bytes that an op holds on its device from beginning to end; those with what
  // it leaves there at the end.
  std::vector<double> held, kept;

  // Bytes that are on `device` while the op runs there, besides what its group
  // holds: what it reads and writes, its workspace. Only for PlanModel::kStep.
  double beside(int32_t op, int32_t device) const {
    if (beside_.empty() || !p_.takes_time(op)) return 0;
    if (!(p_.costs.time(op, device).us > 0)) return 0;  // nothing is live
    const auto& workspace = p_.costs.workspace;
    if (workspace.empty()) return beside_[op];
    const int32_t classes = p_.costs.classes.size();
    const int32_t own = p_.costs.devices[device].device_class;
    return beside_[op] + workspace[op * classes + own];
  }

 private:
  // The values it writes, and those it reads except its group's own. If values
  // share bytes only one counts, the smallest if they differ.
  double values_of(int32_t op) const {
    const SimulatedGraph& g = p_.graph;
    double bytes = 0;
    for (const int32_t v : g.values[op]) bytes += p_.costs.bytes.item(v);
    std::map<int32_t, double> roots;
    for (const int32_t read : g.reads[op]) {
      if (g.everywhere[read]) continue;
      int32_t root = read;
      int32_t from = g.producer[root];
      double least = static_cast<double>(p_.costs.bytes.item(read));
      while (g.alias_of[from] >= 0) {
        root = g.alias_of[from];
        from = g.producer[root];
        const double bytes_here = p_.costs.bytes.item(root);
        const double held = g.variable_bytes[from];
        least = std::min(least, std::max(bytes_here, held));
      }
      if (g.kind[from] == Kind::kSource && p_.group[from] == p_.group[op]) {
        continue;
      }
      const auto [it, added] = roots.emplace(root, least);
      it->second = std::min(it->second, least);
    }
    for (const auto& [root, least] : roots) bytes += least;
    return bytes;
  }

  const PlanProblem& p_;
  std::vector<double> beside_;  // per op
};

constexpr double kLimitRounding = 1e-12;  // share of a limit
constexpr int64_t kShrinkSteps = 2e7;     // ops visited to shrink a set
constexpr size_t kFewOps = 40;            // in a conflict that is made smaller
constexpr size_t kMasks = 64;             // distinguished
constexpr int kNamed = 4;                 // ops named in a sentence

std::string text_of(double bytes) { return bytes_text(std::min(bytes, 9e18)); }

std::string names_of(const PlanProblem& p, DeviceSet devices) {
  std::string text;
  for (; devices; devices.drop_first()) {
    if (!text.empty()) text += devices.several() ? ", " : " and ";
    text += short_name(p, devices.first());
  }
  return text;
}

// "\"a\", \"b\" and 3 more"
std::string names_of(const PlanProblem& p, const Ops& ops) {
  std::string text;
  const size_t named = ops.size() > kNamed + 1 ? kNamed : ops.size();
  for (size_t i = 0; i < named; ++i) {
    if (i > 0) text += i + 1 == ops.size() ? " and " : ", ";
    text += fmt::format("\"{}\"", p.names[ops[i]]);
  }
  if (named == ops.size()) return text;
  return text + fmt::format(" and {} more", ops.size() - named);
}

class Feasible {
 public:
  // For these ops only.
  Feasible(const PlanProblem& p, const MemoryNeeds& needs,
           const std::vector<DeviceSet>& own_mask, const Ops& ops)
      : p_(p), needs_(needs), own_mask_(own_mask) {
    std::vector<std::vector<int32_t>> of_group(p.num_groups);
    for (const int32_t i : ops) of_group[p.group[i]].push_back(i);
    groups_ = Rows<int32_t>(of_group);
    for (const Ops& in : of_group) allowed_.push_back(mask_of(in));
    for (int32_t d = 0; d < p.num_devices(); ++d) {
      if (limit(d) > 0) limited_ |= device_bit(d);
    }
  }

  Infeasible find() {
    for (int32_t g = 0; g < p_.num_groups; ++g) {
      if (allowed_[g] == 0 && !groups_[g].empty()) return no_device(g);
    }
    if (!limited_) return {};
    for (int32_t g = 0; g < p_.num_groups; ++g) {
      if (!groups_[g].empty() && room_for(all_of(g)) == 0) return too_large(g);
    }
    for (const DeviceSet& among : sets_of_limited()) {
      double room = 0;
      for (DeviceSet m = among; m; m.drop_first()) room += limit(m.first());
      Infeasible found = too_much(among, room);
      if (!found.any()) found = too_many(among);
      if (found.any()) return found;
    }
    return {};
  }

 private:
  DeviceSet all_devices() const { return DeviceSet::below(p_.num_devices()); }
  double limit(int32_t d) const { return p_.costs.devices[d].memory_limit; }
  static bool exceeds(double bytes, double limit) {
    return bytes > limit * (1 + kLimitRounding);
  }
  Ops all_of(int32_t g) const { return {groups_[g].begin(), groups_[g].end()}; }
  static double sum_of(const std::vector<double>& bytes, const Ops& ops) {
    double sum = 0;
    for (const int32_t i : ops) sum += bytes[i];
    return sum;
  }
  double kept(const Ops& ops) const { return sum_of(needs_.kept, ops); }
  double held(const Ops& ops) const { return sum_of(needs_.held, ops); }
  DeviceSet mask_of(const Ops& ops) const {
    DeviceSet mask = all_devices();
    for (const int32_t i : ops) mask &= own_mask_[i];
    return mask;
  }

  // Devices that these ops of one group may share, as far as these ops tell.
  DeviceSet room_for(const Ops& ops) const {
    DeviceSet mask = mask_of(ops);
    const double sum = kept(ops), throughout = held(ops);
    for (DeviceSet m = mask & limited_; m; m.drop_first()) {
      const int32_t d = m.first();
      double most = sum;
      for (const int32_t i : ops) {
        most = std::max(most, throughout + needs_.beside(i, d));
      }
      if (exceeds(most, limit(d))) mask &= ~device_bit(d);
    }
    return mask;
  }

  // Drops ops that `fails` fails without, the first ones sooner.
  template <class Fails>
  Ops shrink(Ops ops, const Fails& fails) const {
    int64_t looked = 0;
    for (size_t chunk = std::max<size_t>(ops.size() / 2, 1); chunk > 0;
         chunk /= 2) {
      for (size_t at = 0; at < ops.size();) {
        looked += static_cast<int64_t>(ops.size());
        if (looked > kShrinkSteps) return ops;
        const size_t end = std::min(at + chunk, ops.size());
        Ops less(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(at));
        less.insert(less.end(), ops.begin() + end, ops.end());
        if (!less.empty() && fails(less)) {
          ops = std::move(less);
        } else {
          at = end;
        }
      }
    }
    return ops;
  }
  void sort_by_kept(Ops& ops) const {
    std::ranges::stable_sort(ops, {},
                             [&](int32_t i) { return needs_.kept[i]; });
  }
  Infeasible result(Ops ops, DeviceSet devices, std::string text) const {
    std::sort(ops.begin(), ops.end());
    Infeasible r;
    r.ops = std::move(ops);
    for (; devices; devices.drop_first()) r.devices.push_back(devices.first());
    r.text = std::move(text);
    return r;
  }

  Infeasible no_device(int32_t g) const {
    Ops ops = all_of(g);
    for (const int32_t i : ops) {
      if (own_mask_[i] != 0) continue;
      return result({i}, all_devices(),
                    names_of(p_, Ops{i}) +
                        " has no device that it allows and a kernel for it");
    }
    ops = shrink(ops, [&](const Ops& s) { return mask_of(s) == 0; });
    std::string text = names_of(p_, ops) + " must share a device and cannot";
    DeviceSet devices = 0;
    for (size_t k = 0; k < ops.size(); ++k) {
      const DeviceSet mask = own_mask_[ops[k]];
      devices |= mask;
      if (k >= kNamed) continue;
      text += fmt::format("{} {} runs on {}", k == 0 ? ":" : ",",
                          names_of(p_, Ops{ops[k]}), names_of(p_, mask));
    }
    return result(ops, devices, text + " alone");
  }

  Infeasible too_large(int32_t g) const {
    Ops ops = all_of(g);
    sort_by_kept(ops);
    ops = shrink(ops, [&](const Ops& s) { return room_for(s) == 0; });
    const DeviceSet devices = mask_of(ops);
    const double sum = kept(ops);
    double most = 0, at_once = 0;
    for (DeviceSet m = devices; m; m.drop_first()) {
      const int32_t d = m.first();
      most = std::max(most, limit(d));
      for (const int32_t i : ops) {
        at_once = std::max(at_once, needs_.beside(i, d));
      }
    }
    std::string text = names_of(p_, ops);
    if (ops.size() > 1) text += ", which must share a device,";
    const bool at_end = exceeds(sum, most);
    text += fmt::format(" hold{} {}", ops.size() > 1 ? "" : "s",
                        text_of(at_end ? sum : held(ops)));
    if (!at_end) {
      text +=
          fmt::format(" and, while {} runs, up to {} more",
                      ops.size() > 1 ? "one of them" : "it", text_of(at_once));
    }
    text +=
        devices == 0
            ? "; no device is allowed to all of them"
            : fmt::format("; the limit of {} is {}{}", names_of(p_, devices),
                          devices.count() > 1 ? "at most " : "", text_of(most));
    return result(ops, devices, text);
  }

  // Sets of limited devices that some groups cannot leave, and all of them.
  std::vector<DeviceSet> sets_of_limited() const {
    std::vector<DeviceSet> masks = {limited_};
    for (int32_t g = 0; g < p_.num_groups; ++g) {
      const DeviceSet mask = allowed_[g];
      if (groups_[g].empty() || (mask & ~limited_)) continue;
      if (mask != masks.back() && masks.size() < kMasks) masks.push_back(mask);
    }
    sort_unique(masks);
    std::ranges::stable_sort(masks, {}, &DeviceSet::count);
    return masks;
  }

  // The groups that must be on these devices.
  std::vector<int32_t> bound_to(DeviceSet among) const {
    std::vector<int32_t> groups;
    for (int32_t g = 0; g < p_.num_groups; ++g) {
      if (!groups_[g].empty() && !(allowed_[g] & ~among)) groups.push_back(g);
    }
    return groups;
  }

  // The given ops, and those of their groups that keep them on the devices.
  Ops with_what_binds(Ops ops, DeviceSet among) const {
    std::vector<std::vector<int32_t>> chosen(p_.num_groups);
    for (const int32_t i : ops) chosen[p_.group[i]].push_back(i);
    for (size_t g = 0; g < chosen.size(); ++g) {
      if (chosen[g].empty()) continue;
      DeviceSet mask = mask_of(chosen[g]);
      Ops others;
      for (const int32_t i : groups_[static_cast<int32_t>(g)]) {
        if (!(mask & ~among)) break;
        const DeviceSet less = mask & own_mask_[i];
        if ((less & ~among) == (mask & ~among)) continue;
        mask = less;
        others.push_back(i);
      }
      others = shrink(others, [&](const Ops& s) {
        return !(mask_of(chosen[g]) & mask_of(s) & ~among);
      });
      ops.insert(ops.end(), others.begin(), others.end());
    }
    return ops;
  }

  Infeasible too_much(DeviceSet among, double room) const {
    double sum = 0;
    Ops ops;
    for (const int32_t g : bound_to(among)) {
      for (const int32_t i : groups_[g]) {
        if (needs_.kept[i] > 0) ops.push_back(i);
      }
    }
    if (!exceeds(kept(ops), room)) return {};  // up to rounding
    std::ranges::stable_sort(ops, std::greater<>(),
                             [&](int32_t i) { return needs_.kept[i]; });
    size_t count = 0;
    while (!exceeds(sum, room)) sum += needs_.kept[ops[count++]];
    ops.resize(count);
    std::sort(ops.begin(), ops.end());
    std::string text =
        fmt::format("{} hold{} {}; the {} of {} {} {}{}", names_of(p_, ops),
                    count > 1 ? "" : "s", text_of(sum),
                    among.count() > 1 ? "limits" : "limit", names_of(p_, among),
                    among.count() > 1 ? "are" : "is", text_of(room),
                    among.count() > 1 ? " together" : "");
    return result(with_what_binds(std::move(ops), among), among,
                  std::move(text));
  }

  // More groups above a size than the devices can hold.
  Infeasible too_many(DeviceSet among) const {
    std::vector<std::pair<double, int32_t>> sizes;
    for (const int32_t g : bound_to(among)) {
      const double sum = kept(all_of(g));
      if (sum > 0) sizes.emplace_back(sum, g);
    }
    std::sort(sizes.rbegin(), sizes.rend());
    for (size_t k = 1; k <= sizes.size(); ++k) {
      if (k < sizes.size() && sizes[k].first == sizes[k - 1].first) continue;
      const double size = sizes[k - 1].first;
      double room = 0;
      for (DeviceSet m = among; m; m.drop_first()) {
        room += std::floor(limit(m.first()) * (1 + kLimitRounding) / size);
      }
      if (static_cast<double>(k) <= room) continue;
      const auto many = static_cast<size_t>(room) + 1;
      Ops ops;
      for (size_t j = 0; j < many; ++j) {
        Ops of_group = all_of(sizes[j].second);
        sort_by_kept(of_group);
        of_group = shrink(of_group, [&](const Ops& s) {
          return kept(s) >= size && !(mask_of(s) & ~among);
        });
        ops.insert(ops.end(), of_group.begin(), of_group.end());
      }
      std::string text = fmt::format(
          "{} are {} that hold {} or more each; the limit{} of {} {} room for "
          "{:.0f}",
          names_of(p_, ops), many, text_of(size), among.count() > 1 ? "s" : "",
          names_of(p_, among), among.count() > 1 ? "have" : "has", room);
      return result(ops, among, std::move(text));
    }
    return {};
  }

  const PlanProblem& p_;
  const MemoryNeeds& needs_;
  Rows<int32_t> groups_;
  std::vector<DeviceSet> allowed_;
  const std::vector<DeviceSet>& own_mask_;  // per op
  DeviceSet limited_ = 0;
};

}  // namespace

// The first conflict found need not be the smallest: for few ops, tries again
// without one of them.
Infeasible prove_infeasible(const PlanProblem& p) {
  const MemoryNeeds needs(p);
  const std::vector<DeviceSet> own_mask = allowed_of_ops(p);
  Ops all(static_cast<size_t>(p.num_ops()));
  std::iota(all.begin(), all.end(), 0);
  Infeasible found = Feasible(p, needs, own_mask, all).find();
  for (size_t k = 0; found.ops.size() <= kFewOps && k < found.ops.size();) {
    Ops less = found.ops;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(k));
    Infeasible smaller = Feasible(p, needs, own_mask, less).find();
    if (smaller.any()) {
      found = std::move(smaller);
      k = 0;
    } else {
      ++k;
    }
  }
  return found;
}

}  // namespace berth
