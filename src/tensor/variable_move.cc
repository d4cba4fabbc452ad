// Variables that get other storage: on another device, of another shape.

#include <fmt/format.h>

#include <vector>

#include "berth/errors.h"
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
  // Snapshots take the bytes with them; then nobody uses the storage.
  prepare_write(state);
  Device& old = *state.device;
  synchronize(old.compute_stream().record());
  synchronize(ready_of(state));
  std::vector<std::byte> bytes(size);
  old.copy_to_host(bytes.data(), state.storage->data, size);
  device.copy_from_host(fresh->data, bytes.data(), size);
  state.storage = std::move(fresh);
  name_variable(state);
  state.device = &device;
  handle.impl()->device = &device;
  return true;
}

bool rebind_variable(const Tensor& handle, const Tensor& value) {
  VariableState& state = variable_state(handle);
  const Shape& shape = value.shape();
  const Shape& fits = state.fits ? *state.fits : state.shape;
  if (!state.any_shape && !fits.compatible_with(shape)) {
    throw errors::InvalidArgument(fmt::format(
        "assign() of {} to variable '{}'; expected a shape that fits {}",
        shape.str(), state.name, fits.str()));
  }
  if (value.dtype() != state.dtype) return false;  // the op refuses it
  const std::unique_lock lock(state.mutex);
  if (state.dtype == string_) {  // never changed: the block can be shared
    state.storage = BlockRef::share(value.impl()->block);
    state.shape = shape;
    ++state.version;
    return true;
  }
  if (shape == state.shape) return false;
  const size_t size =
      static_cast<size_t>(shape.num_elements()) * size_of(state.dtype);
  BlockRef fresh =
      BlockRef::adopt(allocate_lasting(state.device->allocator(), size));
  prepare_write(state);
  synchronize(state.device->compute_stream().record());
  synchronize(ready_of(state));
  state.storage = std::move(fresh);
  state.shape = shape;
  name_variable(state);
  return false;
}

}  // namespace berth
