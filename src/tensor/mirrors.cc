#include "tensor/mirrors.h"

#include <fmt/format.h>

#include <mutex>

#include "device/memory_space.h"
#include "tensor/block_copy.h"
#include "tensor/shards.h"
#include "tensor/tensor_impl.h"
#include "tensor/write_marks.h"

namespace berth {

namespace {

// The version of no home: what a mirror that was never filled has.
constexpr uint64_t kNothing = ~uint64_t{0};

// Guards VariableState::mirrors and ::home of all variables. Nobody waits or
// ends a tensor under it.
std::mutex& links_mutex() {
  static std::mutex mutex;
  return mutex;
}

// The caller holds the lock of the links.
Tensor home_locked(const VariableState& mirror) {
  if (mirror.home == nullptr) return {};
  mirror.home->references.fetch_add(1, std::memory_order_relaxed);
  return Tensor::adopt(mirror.home);
}

Tensor find_mirror(const VariableState& home, const Device& device) {
  for (const Tensor& m : home.mirrors) {
    if (m.impl()->variable->device == &device) return m;
  }
  return {};
}

Tensor handle_of(const VariableState& mirror) {
  std::lock_guard lock(links_mutex());
  return find_mirror(*mirror.home->variable, *mirror.device);
}

Tensor make_mirror(const Tensor& home, Device& device, size_t number) {
  const VariableState& h = variable_state(home);
  const std::string name = fmt::format("{}/replica_{}", h.name, number);
  Tensor mirror =
      h.storage
          ? make_variable(device, name, h.dtype, h.shape, h.trainable, h.site)
          : make_unbacked_variable(device, name, h.dtype, h.shape);
  VariableState& m = variable_state(mirror);
  m.trainable = h.trainable;
  m.synchronization = h.synchronization;
  m.aggregation = h.aggregation;
  m.strategy = h.strategy;
  m.home = home.impl();
  m.mirrored_version = kNothing;
  return mirror;
}

}  // namespace

VariableState::~VariableState() {
  if (mirrors.empty() && shards.empty()) return;
  std::lock_guard lock(links_mutex());
  for (const Tensor& m : mirrors) m.impl()->variable->home = nullptr;
  for (const Tensor& s : shards) s.impl()->variable->home = nullptr;
}

Tensor mirror_of(const Tensor& handle, Device& device) {
  // A shard is the home of its mirrors.
  const bool shard = is_shard(variable_state(handle));
  const Tensor own_home = shard ? Tensor() : home_of(handle);
  const Tensor& home = own_home.defined() ? own_home : handle;
  VariableState& state = variable_state(home);
  if (same_memory(*state.device, device)) return home;
  size_t number = 0;
  {
    std::lock_guard lock(links_mutex());
    if (Tensor found = find_mirror(state, device); found.defined()) {
      return found;
    }
    number = state.mirrors.size() + 1;
  }
  // Memory may have to be waited for: without the lock.
  Tensor made = make_mirror(home, device, number);
  std::lock_guard lock(links_mutex());
  // Another thread may have been faster; this mirror then ends after the lock.
  Tensor found = find_mirror(state, device);
  if (found.defined()) return found;
  state.mirrors.push_back(made);
  return made;
}

Tensor home_of(const Tensor& handle) {
  const VariableState& state = variable_state(handle);
  std::lock_guard lock(links_mutex());
  return home_locked(state);
}

std::vector<Tensor> mirrors_of(const Tensor& home) {
  const VariableState& state = variable_state(home);
  std::lock_guard lock(links_mutex());
  return state.mirrors;
}

bool is_stale(const VariableState& mirror) {
  if (mirror.home == nullptr) return false;
  // Shards that were written have more than the home.
  if (is_shard(mirror) && mirror.home->variable->behind) return false;
  return (mirror.mirrored_version != mirror.home->variable->version ||
          mirror.torn);
}

void refresh_mirror(VariableState& mirror) {
  if (!is_stale(mirror)) return;
  if (is_shard(mirror)) return refresh_shard(mirror);
  VariableState& home = *mirror.home->variable;
  check_not_torn(home);
  prepare_write(mirror);
  Stream& stream = mirror.device->compute_stream();
  stream.wait(ready_of(home));
  launch_block_copy(stream, mirror.storage, home.storage, home.size_bytes(),
                    "RefreshMirror");
  mirror.torn = false;
  if (!mirror.device->runs_inline()) {
    watch_writes(stream, {handle_of(mirror)}, "bringing a mirror up to date");
    mirror.storage->ready = stream.record();
    // The home's next writer waits.
    add_use(home.storage.get(), mirror.storage->ready);
  }
  mirror.mirrored_version = home.version;
}

void mark_fresh(VariableState& mirror) {
  if (mirror.home == nullptr) return;
  mirror.mirrored_version = mirror.home->variable->version;
}

}  // namespace berth
