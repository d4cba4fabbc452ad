#include "tensor/shards.h"

#include <fmt/format.h>

#include "berth/errors.h"
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

void copy_bytes(const VariableState& from, size_t from_byte,
                const VariableState& to, size_t to_byte, size_t count) {
  std::vector<std::byte> bytes(count);
  from.device->copy_to_host(bytes.data(), from.storage->data + from_byte,
                            count);
  to.device->copy_from_host(to.storage->data + to_byte, bytes.data(), count);
}

size_t first_byte(const VariableState& shard) {
  return static_cast<size_t>(shard.shard_begin) * size_of(shard.dtype);
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

std::vector<Tensor> divide(const Tensor& home,
                           const std::vector<Device*>& devices) {
  VariableState& h = variable_state(home);
  {
    const std::shared_lock lock(h.mutex);
    if (are_on(h.shards, devices)) return h.shards;
  }
  // Memory may have to be waited for: without the lock.
  std::vector<Tensor> made;
  const int64_t n = h.shape.num_elements();
  const auto parts = static_cast<int64_t>(devices.size());
  for (int64_t k = 0; k < parts; ++k) {
    const int64_t begin = n * k / parts, end = n * (k + 1) / parts;
    made.push_back(make_variable(*devices[static_cast<size_t>(k)],
                                 fmt::format("{}/shard_{}", h.name, k), h.dtype,
                                 Shape{end - begin}, h.trainable, h.site));
    VariableState& s = variable_state(made.back());
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
    copy_bytes(s, 0, home, first_byte(s), s.size_bytes());
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
  copy_bytes(home, first_byte(shard), shard, 0, shard.size_bytes());
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
