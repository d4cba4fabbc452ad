// pick_device: where one eager call runs, and what is said about it.
//
// Feeds op/choose_device with the real devices, the calling thread's scope and
// the soft placement policy. Thread-safe.

#ifndef BERTH_EAGER_PICK_DEVICE_H_
#define BERTH_EAGER_PICK_DEVICE_H_

#include <cstdint>
#include <span>
#include <string>

#include "device/device.h"
#include "op/choose_device.h"
#include "op/op_def.h"

namespace berth {

struct PickedDevice {
  Device* device = nullptr;
  ChoiceRule rule = ChoiceRule::kNone;
  std::string reason;  // of a fallback alone
};

// One bit per device, by position in order of preference.
using DeviceBits = uint64_t;
static_assert(kMaxDevices <= 64);

// Picks the device of a call whose kernels are those for `dtype`; devices in
// `refused` have none for these shapes. Throws errors::InvalidArgument (no such
// device) and errors::Unimplemented (no kernel).
PickedDevice pick_device(const OpDef& op, std::span<const Tensor* const> in,
                         DType dtype, DeviceBits refused);

// Reports a fallback with the bytes that move because of it: inputs that come
// over, and outputs when the device that was asked for exists.
void report_pick(const OpDef& op, std::span<const Tensor* const> in,
                 std::span<const OutSpec> out, const PickedDevice& picked);

// Says where `op` runs: diagnostic "placement".
void log_placement(const OpDef& op, const Device& device);

// Applies config::device_policy to input `i`, which is elsewhere than `device`.
// Throws errors::InvalidArgument.
void check_policy(const OpDef& op, int i, const Tensor& input,
                  const Device& device);

// True for ops that only read shapes and give integers: the host does it.
bool runs_on_host(const OpDef& op, std::span<const OutSpec> out);

}  // namespace berth

#endif  // BERTH_EAGER_PICK_DEVICE_H_
