// select_device: the one rule by which a request picks a device.
//
// Eager execution and the placer ask it alike (SelectDevice in TensorFlow's
// eager/context.cc, the end of placer.cc). Pure; thread-safe.

#ifndef BERTH_OP_SELECT_DEVICE_H_
#define BERTH_OP_SELECT_DEVICE_H_

#include <cstddef>
#include <span>

#include "device/device_name.h"

namespace berth {

struct SelectedDevice {
  int position = -1;     // in the list; -1: none
  bool relaxed = false;  // type and id of the request were dropped
};

// Returns the first of `devices`, which are complete names in order of
// preference, that `request` matches and for which can_run(position) holds.
// With `soft`, else the first of the same job, replica and task.
template <class CanRun>
SelectedDevice select_device(const DeviceName& request,
                             std::span<const DeviceName* const> devices,
                             bool soft, CanRun&& can_run) {
  const auto first = [&](const DeviceName& wanted) {
    for (size_t i = 0; i < devices.size(); ++i) {
      const int position = static_cast<int>(i);
      if (wanted.matches(*devices[i]) && can_run(position)) return position;
    }
    return -1;
  };
  SelectedDevice s;
  s.position = first(request);
  if (s.position >= 0 || !soft) return s;
  DeviceName task = request;
  task.type.reset();
  task.id.reset();
  s.position = first(task);
  s.relaxed = s.position >= 0;
  return s;
}

}  // namespace berth

#endif  // BERTH_OP_SELECT_DEVICE_H_
