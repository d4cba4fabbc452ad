// Variables that are put on another device.

#include <vector>

#include "device/holders.h"
#include "device/idle_memory.h"
#include "tensor/tensor_impl.h"
#include "tensor/write_marks.h"

namespace berth {

VariableHold::VariableHold(Tensor handle) : handle_(std::move(handle)) {
  VariableState& state = variable_state(handle_);
  const std::shared_lock lock(state.mutex);
  ++state.holds;
}

VariableHold::~VariableHold() {
  if (handle_.defined()) --variable_state(handle_).holds;
}

bool can_move(const VariableState& s, const void* strategy) {
  return s.holds == 0 && !s.torn && s.strategy == strategy && s.parts.empty() &&
         s.mirrors.empty() && s.shards.empty() && s.home == nullptr;
}

bool move_variable(const Tensor& handle, Device& device, const void* strategy) {
  VariableState& state = variable_state(handle);
  const std::unique_lock lock(state.mutex);
  if (state.device == &device) return true;
  if (!can_move(state, strategy)) return false;
  if (!state.storage) {  // of a plan that is never run
    state.device = handle.impl()->device = &device;
    return true;
  }
  const size_t size = state.size_bytes();
  BlockRef fresh = BlockRef::adopt(allocate_lasting(device.allocator(), size));
  name_holder(fresh.get(),
              lasting_name("variable '" + state.name + "'", "variables"),
              state.site);
  // Snapshots take the bytes with them; then nobody uses the storage.
  prepare_write(state);
  Device& old = *state.device;
  synchronize(old.compute_stream().record());
  synchronize(ready_of(state));
  std::vector<std::byte> bytes(size);
  old.copy_to_host(bytes.data(), state.storage->data, size);
  device.copy_from_host(fresh->data, bytes.data(), size);
  state.storage = std::move(fresh);
  state.device = &device;
  handle.impl()->device = &device;
  return true;
}

}  // namespace berth
