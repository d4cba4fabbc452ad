#include "io/variable_bytes.h"

#include <fmt/format.h>

#include <mutex>

#include "device/device_manager.h"
#include "io/parallel_for_files.h"
#include "op/dispatcher.h"
#include "tensor/shards.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::io {

namespace {

// Writes the storage of a variable on the host; false when it is not there.
bool fill_storage(const Tensor& handle, const std::string& why,
                  const std::function<void(std::byte*)>& fill) {
  VariableState& state = variable_state(handle);
  const std::unique_lock lock(state.mutex);
  Device& device = *state.device;
  if (!device.memory().host_addressable) return false;
  prepare_write(state);
  // Asynchronous work before this may still use it.
  finish(device.compute_stream().record());
  finish(state.storage->ready);
  try {
    fill(state.storage->data);
  } catch (const std::exception& e) {
    mark_torn(state, fmt::format("{} failed ({})", why, e.what()));
    throw;
  }
  state.storage->ready = {};
  state.torn = false;
  mark_written(state);
  return true;
}

}  // namespace

void fill_variable(const Variable& v, const std::string& why, Site site,
                   const std::function<void(std::byte*)>& fill) {
  const bool parts = !variable_state(v.handle()).parts.empty();
  if (!parts && fill_storage(v.handle(), why, fill)) return;
  const Tensor host =
      make_tensor(DeviceManager::get().host(), v.dtype(), v.shape());
  fill(host.impl()->data());
  const DispatchGuard eager(nullptr);
  v.assign(host, site);
}

void read_variables(const std::vector<VariableToRead>& list,
                    const std::string& why, Site site) {
  // Large ones are read by all threads, one after the other.
  constexpr size_t kLarge = size_t{32} << 20;
  std::vector<const VariableToRead*> shared, alone;
  size_t bytes = 0;
  for (const VariableToRead& v : list) {
    const VariableState& state = variable_state(v.variable.handle());
    const bool here =
        state.parts.empty() && state.device->memory().host_addressable;
    const size_t size = state.size_bytes();
    if (here && size < kLarge) bytes += size;
    (here && size < kLarge ? shared : alone).push_back(&v);
  }
  const auto read = [&](const VariableToRead& v) {
    fill_variable(v.variable, why, site,
                  [&](std::byte* target) { v.file->read(v.index, target); });
  };
  parallel_for(shared.size(), bytes, [&](size_t i) { read(*shared[i]); });
  for (const VariableToRead* v : alone) read(*v);
}

}  // namespace berth::io
