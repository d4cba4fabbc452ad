#include "tensor/shards.h"

#include <fmt/format.h>

#include <numeric>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "tensor/mirrors.h"
#include "tensor/tensor_impl.h"
#include "tensor/write_marks.h"

namespace berth {

namespace {

// Waits for work that uses the storage. The caller holds the lock exclusively.
void settle(const VariableState& v) {
  synchronize(v.device->compute_stream().record());
  synchronize(ready_of(v));
}

// Where the rows of a shard are in its home, in bytes.
struct ShardRows {
  size_t count = 1, bytes = 0;     // how many, and of each
  size_t begin = 0, home_row = 0;  // the first, and from one to the next
};

ShardRows rows_of(const VariableState& home, const VariableState& shard) {
  size_t unit = size_of(home.dtype);
  ShardRows r;
  for (int d = 0; d < home.shape.rank() && home.split_axis >= 0; ++d) {
    const auto length = static_cast<size_t>(home.shape[d]);
    if (d < home.split_axis) r.count *= length;
    if (d > home.split_axis) unit *= length;
  }
  r.begin = static_cast<size_t>(shard.shard_begin) * unit;
  r.bytes = r.count == 0 ? 0 : shard.size_bytes() / r.count;
  r.home_row = r.count == 0 ? 0 : home.size_bytes() / r.count;
  return r;
}

void copy_to_home(const VariableState& shard, const VariableState& home) {
  const ShardRows r = rows_of(home, shard);
  std::vector<std::byte> bytes(shard.size_bytes());
  shard.device->copy_to_host(bytes.data(), shard.storage->data, bytes.size());
  for (size_t i = 0; i < r.count; ++i) {
    home.device->copy_from_host(home.storage->data + r.begin + i * r.home_row,
                                bytes.data() + i * r.bytes, r.bytes);
  }
}

void copy_from_home(const VariableState& home, const VariableState& shard) {
  const ShardRows r = rows_of(home, shard);
  std::vector<std::byte> bytes(shard.size_bytes());
  for (size_t i = 0; i < r.count; ++i) {
    home.device->copy_to_host(bytes.data() + i * r.bytes,
                              home.storage->data + r.begin + i * r.home_row,
                              r.bytes);
  }
  shard.device->copy_from_host(shard.storage->data, bytes.data(), bytes.size());
}

// The place of the first, and the shape, of part k of a variable.
std::pair<int64_t, Shape> part_of(const VariableState& v, size_t k,
                                  size_t parts,
                                  const std::vector<int>& shares) {
  if (v.split_axis < 0) {
    const auto [begin, end] = shard_range(v.shape.num_elements(), parts, k);
    return {begin, Shape{end - begin}};
  }
  const int64_t length = v.shape[v.split_axis];
  auto [begin, end] = shard_range(length, parts, k);
  if (!shares.empty()) {
    const auto first = shares.begin(), at = first + static_cast<ptrdiff_t>(k);
    const auto sum = std::accumulate(first, shares.end(), int64_t{0});
    const auto before = std::accumulate(first, at, int64_t{0});
    begin = length * before / sum;
    end = length * (before + *at) / sum;
  }
  Shape shape = v.shape;
  shape[v.split_axis] = end - begin;
  return {begin, shape};
}

bool are_on(const std::vector<Tensor>& shards,
            const std::vector<Device*>& devices) {
  bool same = shards.size() == devices.size();
  for (size_t k = 0; k < shards.size() && same; ++k) {
    same = shards[k].impl()->variable->device == devices[k];
  }
  return same;
}

}  // namespace

void set_split_axis(const Tensor& home, int axis, const void* strategy) {
  move_variable(home, DeviceManager::get().host(), strategy);
  variable_state(home).split_axis = axis;
}

std::vector<Tensor> divide(const Tensor& home,
                           const std::vector<Device*>& devices,
                           const std::vector<int>& shares) {
  VariableState& h = variable_state(home);
  {
    const std::shared_lock lock(h.mutex);
    if (are_on(h.shards, devices)) return h.shards;
  }
  // Memory may have to be waited for: without the lock.
  std::vector<Tensor> made;
  for (size_t k = 0; k < devices.size(); ++k) {
    const auto [begin, shape] = part_of(h, k, devices.size(), shares);
    const std::string name = fmt::format("{}/shard_{}", h.name, k);
    made.push_back(
        h.storage ? make_variable(*devices[k], name, h.dtype, shape,
                                  h.trainable, h.site)
                  : make_unbacked_variable(*devices[k], name, h.dtype, shape));
    VariableState& s = variable_state(made.back());
    s.trainable = h.trainable;
    s.strategy = h.strategy;
    s.home = home.impl();
    s.shard_begin = begin;
    s.mirrored_version = ~uint64_t{0};  // of no home
  }
  const std::unique_lock lock(h.mutex);
  // Another thread may have been faster.
  if (h.shards.empty()) h.shards = std::move(made);
  if (are_on(h.shards, devices)) return h.shards;
  throw errors::FailedPrecondition(fmt::format(
      "variable '{}' is divided over {} other devices; expected one strategy "
      "to train it: assign its value to a variable made in the scope of this "
      "one",
      h.name, h.shards.size()));
}

void catch_up(VariableState& home) {
  if (!home.behind) return;
  const std::unique_lock lock(home.mutex);
  if (!home.behind || home.torn) return;
  // Shards are made after their home: in the order of serials.
  std::vector<std::unique_lock<std::shared_mutex>> locks;
  for (const Tensor& t : home.shards) {
    locks.emplace_back(variable_state(t).mutex);
  }
  for (const Tensor& t : home.shards) check_not_torn(variable_state(t));
  prepare_write(home);
  settle(home);
  for (const Tensor& t : home.shards) {
    VariableState& s = variable_state(t);
    settle(s);
    copy_to_home(s, home);
    s.mirrored_version = home.version;
  }
  home.behind = false;
}

void refresh_shard(VariableState& shard) {
  VariableState& home = *shard.home->variable;
  check_not_torn(home);
  prepare_write(shard);
  settle(shard);
  synchronize(ready_of(home));
  copy_from_home(home, shard);
  shard.storage->ready = {};
  shard.torn = false;
  shard.mirrored_version = home.version;
}

void mark_written(VariableState& v) {
  if (!is_shard(v)) {
    v.behind = false;
  } else if (v.home != nullptr) {
    v.home->variable->behind = true;
  }
}

}  // namespace berth
