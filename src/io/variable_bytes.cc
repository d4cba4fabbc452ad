#include "io/variable_bytes.h"

#include <fmt/format.h>

#include <mutex>

#include "device/device_manager.h"
#include "op/dispatcher.h"
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

}  // namespace berth::io
