#include "data/user_call.h"

#include <fmt/format.h>

#include "device/device_manager.h"

namespace berth::data {

UserCall::UserCall()
    : eager_(nullptr), site_(t_state.site), layer_(t_state.layer) {
  t_state.layer = nullptr;
  DeviceManager& devices = DeviceManager::get();
  if (t_state.scope != nullptr ||
      &devices.default_device() != &devices.host()) {
    host_.emplace(&devices.host());
  }
}

UserCall::~UserCall() {
  t_state.site = site_;
  t_state.layer = layer_;
}

void raise_for(const Node& node, int64_t number) {
  const PassError failure = PassError::current();
  errors::raise(failure.code, fmt::format("{}: element {}: {}", node.where(),
                                          number, failure.message));
}

Tensors call_map(const Node& node, int64_t number, const MapFunction& fn,
                 const Tensors& element) {
  return call_user(node, number, [&] {
    Tensors out = fn(element);
    if (out.empty()) {
      throw errors::InvalidArgument(
          "the function returned no tensors; expected at least one component");
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i].defined() || out[i].is_symbolic() ||
          out[i].dtype() == resource) {
        throw errors::InvalidArgument(
            fmt::format("component {} is {}; expected a tensor with values", i,
                        !out[i].defined()      ? "an empty Tensor"
                        : out[i].is_symbolic() ? "a tensor of a traced function"
                                               : "a Variable's handle"));
      }
    }
    return out;
  });
}

}  // namespace berth::data
