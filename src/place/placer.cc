#include "place/placer.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth {

Placer::Placer(Graph& g, const PlaceOptions& o)
    : graph(g), options(o), devices(o), sets(g, o, devices) {
  sets.connect();
  for (const auto& c : sets.ignored_groups) {
    notes_.push_back(
        {"colocation-ignored", c.node,
         fmt::format("{} is in colocation group \"{}\" with \"{}\", but no "
                     "device suits both; it is placed by itself",
                     describe(graph, c.node), c.name, graph[c.with].name)});
  }
  for (const auto& c : sets.lone_groups) {
    notes_.push_back(
        {"colocation-alone", c.node,
         fmt::format("{} shares a device with \"{}\", but no node has this "
                     "name and no other node names it; is it misspelt?",
                     describe(graph, c.node), c.name)});
  }
  const size_t n = static_cast<size_t>(sets.num_elements());
  device_of.assign(n, -1);
  decisions_.resize(n);
  root_.resize(graph.nodes.size());
  bool joined = false;
  for (int32_t i = 0; i < graph.size(); ++i) {
    root_[i] = sets.find(i);
    joined = joined || root_[i] != i;
  }
  if (joined) list_members();
}

void Placer::list_members() {
  first_member_.assign(device_of.size() + 1, 0);
  for (const int32_t r : root_) ++first_member_[r + 1];
  for (size_t r = 1; r < first_member_.size(); ++r) {
    first_member_[r] += first_member_[r - 1];
  }
  members_.resize(root_.size());
  std::vector<int32_t> next(first_member_.begin(), first_member_.end() - 1);
  for (int32_t i = 0; i < graph.size(); ++i) members_[next[root_[i]]++] = i;
}

std::span<const int32_t> Placer::members(int32_t root) const {
  if (first_member_.empty()) return {&root_[root], 1};
  const int32_t first = first_member_[root];
  return {members_.data() + first,
          static_cast<size_t>(first_member_[root + 1] - first)};
}

void Placer::decide(int32_t root, int32_t device, PlaceRule rule,
                    int32_t decider, int32_t because) {
  device_of[root] = device;
  decisions_[root] = {rule, decider, because};
}

bool Placer::try_decide(int32_t root, int32_t device, PlaceRule rule,
                        int32_t decider, int32_t because) {
  if (!allows(root, device)) return false;
  decide(root, device, rule, decider, because);
  return true;
}

DeviceSet Placer::candidates(int32_t root) {
  const ConstraintSets::Set& s = set(root);
  if (s.pinned) return s.pin;
  if (const DeviceSet m = s.allowed & devices.mask(s.requested)) return m;
  if (!sets.hard()) {
    for (const auto keep : {s.resource, DeviceTable::kAny}) {
      const auto relaxed = devices.relax(s.requested, keep);
      if (const DeviceSet m = s.allowed & devices.mask(relaxed)) return m;
    }
  }
  sets.fail(members(root)[0]);
}

bool Placer::obey(int32_t root) {
  const ConstraintSets::Set& s = set(root);
  if (!s.pinned && s.requested == DeviceTable::kAny) return false;
  const int32_t d = sets.kernels().first(candidates(root), s.priorities);
  if (s.pinned) {
    const int32_t m = pinned_member(root);
    const bool assigned = options.keep_assigned && !graph[m].assigned.empty();
    decide(root, d, assigned ? PlaceRule::kAssigned : PlaceRule::kVariable, m);
  } else {
    const int32_t m = decider_of_request(root, d);
    decide(root, d, sets.handle(m) ? PlaceRule::kVariable : PlaceRule::kRequest,
           m);
  }
  return true;
}

void Placer::use_default(int32_t root) {
  const ConstraintSets::Set& s = set(root);
  decide(root, sets.kernels().first(s.allowed, s.priorities),
         PlaceRule::kDefault, members(root)[0]);
}

int32_t Placer::pinned_member(int32_t root) const {
  for (const int32_t m : members(root)) {
    if (options.keep_assigned && !graph[m].assigned.empty()) return m;
    if (graph[m].variable.defined()) return m;
  }
  return members(root)[0];
}

// The request's owner: a handle, else one whose request is met, else the first.
int32_t Placer::decider_of_request(int32_t root, int32_t device) {
  int32_t obeyed = -1, first = -1;
  for (const int32_t m : members(root)) {
    const auto asked = sets.request(m);
    if (asked == DeviceTable::kAny) continue;
    if (first < 0) first = m;
    if (!devices.mask(asked).has(device)) continue;
    if (sets.handle(m)) return m;
    if (obeyed < 0) obeyed = m;
  }
  if (obeyed >= 0) return obeyed;
  return first >= 0 ? first : members(root)[0];
}

void Placer::note_colocation_ignored(int32_t node, int32_t with) {
  notes_.push_back(
      {"colocation-ignored", node,
       fmt::format("{} belongs to \"{}\" on {}, which has no kernel for it; "
                   "it runs on {}",
                   describe(graph, node), graph[with].name,
                   short_device(devices[device_of[root_[with]]].id),
                   short_device(devices[device_of[root_[node]]].id))});
}

// The first handle that a node touches, -1: none.
int32_t Placer::handle_of(int32_t node) const {
  for (const ValueRef& v : graph[node].inputs) {
    if (graph.spec(v).dtype == resource && root_[v.node] == root_[node]) {
      return v.node;
    }
  }
  return -1;
}

PlaceReason Placer::reason_of(int32_t node) const {
  const Decision& d = decisions_[root_[node]];
  if (node == d.decider) {
    const bool own = d.rule == PlaceRule::kVariable && d.because < 0;
    return {d.rule, own ? node : d.because};
  }
  if (sets.handle(d.decider)) {
    if (sets.handle(node)) return {PlaceRule::kVariable, d.decider};
    if (const int32_t h = handle_of(node); h >= 0) {
      return {PlaceRule::kVariable, h};
    }
  }
  return {PlaceRule::kGroup, d.decider};
}

Placement Placer::finish() {
  Placement p;
  p.reasons.resize(graph.nodes.size());
  p.device.resize(graph.nodes.size());
  p.notes = std::move(notes_);
  for (int32_t i = 0; i < graph.size(); ++i) {
    const int32_t d = device_of[root_[i]];
    p.reasons[i] = reason_of(i);
    p.device[i] = devices[d].position;
    graph[i].assigned = devices[d].id;
    const auto asked = sets.request(i);
    if (!devices.mask(asked).has(d)) compare_request(i, &p);
  }
  return p;
}

// Says why a request was not met: a fallback if the only cause is a missing
// device or kernel.
void Placer::compare_request(int32_t i, Placement* p) {
  const int32_t root = root_[i];
  const ConstraintSets::Set& s = set(root);
  const DeviceId text = graph[i].requested;
  const std::string at = short_device(devices[device_of[root]].id);
  const DeviceSet asked = devices.mask(sets.request(i));
  const auto fallback = [&](std::string reason) {
    p->fallbacks.push_back({i, text, std::move(reason)});
  };
  const auto ignored = [&](const std::string& why) {
    p->notes.push_back({"request-ignored", i,
                        fmt::format("{} was asked for on \"{}\" but {}, on {}",
                                    describe(graph, i), text.text(), why, at)});
  };
  if (asked == 0)
    return fallback(fmt::format("there is no \"{}\"", text.text()));
  const DeviceSet first = device_bit(asked.first());
  if ((asked & sets.kernels().of(graph, graph[i]).devices) == 0) {
    return fallback(fmt::format("no kernel for {} on {}",
                                name_of(node_dtype(graph, graph[i])),
                                devices.list(first)));
  }
  const PlaceReason reason = p->reasons[i];
  const int32_t because =
      reason.because >= 0 ? reason.because : decisions_[root].decider;
  const bool bound = s.pinned || (asked & devices.mask(s.resource)) == 0;
  if (bound && reason.rule == PlaceRule::kVariable && because != i) {
    return ignored(
        fmt::format("touches variable \"{}\" and runs where that lives",
                    variable_name(graph[because])));
  }
  if (bound && s.pinned) {
    return because == i ? ignored("its variable lives elsewhere")
                        : ignored(fmt::format("shares a device with \"{}\"",
                                              graph[because].name));
  }
  if ((asked & s.allowed) == 0) return fallback(missing_in_set(root, asked));
  ignored(fmt::format("shares a device with \"{}\"{}", graph[because].name,
                      graph[because].requested.empty()
                          ? ""
                          : fmt::format(", which was asked for on \"{}\"",
                                        graph[because].requested.text())));
}

// Names the member that keeps the set from the requested devices.
std::string Placer::missing_in_set(int32_t root, DeviceSet asked) {
  if (missing_.root != root || missing_.asked != asked) {
    missing_ = {root, asked, "no device suits all that must share one"};
    for (const int32_t m : members(root)) {
      if (asked & sets.kernels().of(graph, graph[m]).devices) continue;
      missing_.text =
          fmt::format("{} must be with it and has no kernel for {} on {}",
                      describe(graph, m), name_of(node_dtype(graph, graph[m])),
                      devices.list(device_bit(asked.first())));
      break;
    }
    if ((asked & devices.hosts()) == 0 && set(root).allowed != 0 &&
        (set(root).allowed & ~devices.hosts()) == 0 &&
        missing_.text.starts_with("no device")) {
      missing_.text = "its data can only be on the host";
    }
  }
  return missing_.text;
}

}  // namespace berth
