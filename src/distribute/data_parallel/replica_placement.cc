#include "distribute/data_parallel/replica_placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "berth/errors.h"
#include "device/device_name.h"
#include "device/memory_space.h"
#include "distribute/data_parallel/shares.h"
#include "op/device_scope.h"

namespace berth::distribute {

namespace {

void check_shares(const SplitPlan& plan) {
  const bool negative = std::any_of(plan.shares.begin(), plan.shares.end(),
                                    [](int s) { return s < 0; });
  const int64_t sum =
      std::accumulate(plan.shares.begin(), plan.shares.end(), int64_t{0});
  if (plan.shares.empty() ||
      (plan.shares.size() == plan.replicas.size() && !negative && sum > 0)) {
    return;
  }
  throw errors::InvalidArgument(fmt::format(
      "shares are [{}] of {} replicas; expected one per replica, at least 0 "
      "and not all 0",
      fmt::join(plan.shares, ", "), plan.replicas.size()));
}

// Adds the subtrees of the tree over `total` slices that form [first, end).
void add_pieces(int replica, int32_t first, int32_t end, SplitPlaces* p) {
  while (first < end) {
    int32_t width = 1;
    while (first % (2 * width) == 0 && first + width < end &&
           std::min(first + 2 * width, p->slices) <= end) {
      width *= 2;
    }
    const int32_t count = std::min(width, end - first);
    const int64_t row = p->batch * first / p->slices;
    const int64_t next = p->batch * (first + count) / p->slices;
    p->pieces.push_back({replica, {row, next - row}, first, count});
    first += count;
  }
}

void add_memories(const SplitPlan& plan, SplitPlaces* p) {
  std::vector<std::string> keys;
  for (size_t r = 0; r < plan.replicas.size(); ++r) {
    if (!plan.tasks.is_here(static_cast<int>(r))) {
      p->memory_of.push_back(-1);
      continue;
    }
    std::string key;
    for (const DeviceId d : plan.replicas[r]) key += memory_of(d) + ";";
    const auto it = std::find(keys.begin(), keys.end(), key);
    p->memory_of.push_back(static_cast<int>(it - keys.begin()));
    if (it != keys.end()) continue;
    keys.push_back(key);
    p->memories.push_back({static_cast<int>(r), plan.replicas[r]});
  }
  if (plan.central.empty()) return;
  p->home = static_cast<int>(p->memories.size());
  p->memories.push_back({-1, {plan.central}});
}

// Examples as the tasks have them, split evenly within each.
std::vector<int64_t> rows_of_tasks(const TaskPart& tasks) {
  std::vector<int64_t> rows;
  for (size_t k = 0; k < tasks.rows.size(); ++k) {
    const auto n = static_cast<size_t>(tasks.first[k + 1] - tasks.first[k]);
    for (const int64_t r : even_parts(tasks.rows[k], n)) rows.push_back(r);
  }
  return rows;
}

// Slices of each replica if tasks bring their own examples: borders between
// tasks must be borders of slices.
std::vector<int> slices_of_tasks(const TaskPart& tasks, int64_t batch,
                                 int32_t slices) {
  std::vector<int> shares;
  int64_t row = 0;
  int32_t at = 0;
  for (size_t k = 0; k < tasks.rows.size(); ++k) {
    row += tasks.rows[k];
    const int32_t first = at;
    while (at < slices && batch * at / slices < row) ++at;
    if (batch * at / slices != row) {
      throw errors::InvalidArgument(fmt::format(
          "the tasks have [{}] examples of a batch, which is cut into {} "
          "slices; expected the border of a slice between tasks: batches of "
          "equal size in all of them, of a multiple of {} examples",
          fmt::join(tasks.rows, ", "), slices,
          slices / std::gcd(slices, tasks.ranks())));
    }
    const auto n = static_cast<size_t>(tasks.first[k + 1] - tasks.first[k]);
    for (const int64_t s : even_parts(at - first, n)) {
      shares.push_back(static_cast<int>(s));
    }
  }
  return shares;
}

}  // namespace

SplitPlaces in_one_memory(const SplitPlaces& places) {
  SplitPlaces p = places;
  p.memories = {places.memories[static_cast<size_t>(places.home)]};
  p.home = 0;
  std::fill(p.memory_of.begin(), p.memory_of.end(), 0);
  return p;
}

DeviceId device_for(DeviceId request, const std::vector<DeviceId>& devices,
                    const Node& node) {
  if (request.empty()) return devices[0];
  if (request.is_cpu() && !devices[0].is_cpu()) return request;
  if (devices.size() == 1) return devices[0];
  const auto id = static_cast<size_t>(request.name().id.value_or(0));
  if (id < devices.size()) return devices[id];
  throw errors::InvalidArgument(fmt::format(
      "{} asks for {}{}; a replica of the strategy has {} devices: expected a "
      "number below {}, which counts within the replica",
      node.name, request.text(),
      node.sources.empty() ? "" : where_text(nullptr, node.sources[0].site),
      devices.size(), devices.size()));
}

void ask_for(Node& node, const Node& old,
             const std::vector<DeviceId>& devices) {
  const OpKind kind = old.op->kind();
  const bool several = devices.size() > 1;
  node.requested.clear();
  // Where the variable is.
  if (kind == OpKind::kReadVariable || old.has_effect()) return;
  if (kind == OpKind::kAlias) {  // where the input is
    if (several && !old.requested.empty()) {
      node.requested = device_for(old.requested, devices, old);
    }
    return;
  }
  // With the node that it follows, or with its readers.
  const bool floats = node.follows >= 0 || old.op->graph_only();
  if (several && old.requested.empty() && floats) return;
  node.requested = device_for(old.requested, devices, old);
}

SplitPlaces places_of(const SplitPlan& plan, int64_t batch) {
  check_shares(plan);
  SplitPlaces p;
  p.batch = batch;
  const auto n = static_cast<int>(plan.replicas.size());
  const bool of_tasks = !plan.tasks.rows.empty();
  if (batch == 1 && !of_tasks) {
    p.examples.assign(static_cast<size_t>(n), {1, 0});
    p.examples[0] = {0, 1};
    p.pieces = {{0, {0, 1}, 0, 0}};
    add_memories(plan, &p);
    return p;
  }
  const int total = plan.slices > 0 ? plan.slices : 32;
  if (of_tasks && plan.slices == 0) {
    int64_t row = 0;
    for (const int64_t rows : rows_of_tasks(plan.tasks)) {
      p.examples.push_back({row, rows});
      row += rows;
    }
  } else if (!plan.shares.empty() || plan.slices > 0) {
    // A smaller batch has fewer slices.
    p.slices = static_cast<int32_t>(std::min<int64_t>(total, batch));
    std::vector<double> weights(plan.shares.begin(), plan.shares.end());
    if (weights.empty()) weights.assign(static_cast<size_t>(n), 1);
    const std::vector<int> shares =
        of_tasks ? slices_of_tasks(plan.tasks, batch, p.slices)
                 : slices_by_weight(weights, p.slices);
    p.first_slice.push_back(0);
    for (int r = 0; r < n; ++r) {
      const int32_t first = p.first_slice.back(), end = first + shares[r];
      const int64_t row = batch * first / p.slices;
      p.examples.push_back({row, batch * end / p.slices - row});
      p.first_slice.push_back(end);
      if (plan.slices > 0) add_pieces(r, first, end, &p);
    }
    if (plan.slices == 0) p.slices = 0;
  } else {
    int64_t row = 0;
    for (const int64_t rows : even_parts(batch, plan.replicas.size())) {
      p.examples.push_back({row, rows});
      row += rows;
    }
  }
  if (p.slices == 0) {
    for (int r = 0; r < n; ++r) {
      if (p.examples[r].rows > 0) p.pieces.push_back({r, p.examples[r], 0, 0});
    }
  }
  add_memories(plan, &p);
  return p;
}

std::vector<int64_t> examples_of(const SplitPlan& plan, int64_t batch) {
  if (batch == 0) return std::vector<int64_t>(plan.replicas.size(), 0);
  std::vector<int64_t> rows;
  for (const ExampleRange& e : places_of(plan, batch).examples) {
    rows.push_back(e.rows);
  }
  return rows;
}

}  // namespace berth::distribute
