// choose_device: where one eager op runs, by rules.
//
// Pure: devices are names in order of preference, real or hypothetical, and
// none is touched. Rules, in order:
//   resource       the device of the first variable it touches: kernels write
//                  in place, so this binds even against a request
//   request        what the scope asks for
//   metadata       ops that only read shapes: where their input is
//   host-strings   text lives on the host
//   host-integers  int32 and int64 of at most 64 elements that are all on a
//                  CPU stay there: a GPU gains nothing by shape arithmetic
//   default        the first device, in order of preference, with a kernel
//   fallback       soft placement: a request that nothing meets loses its type
//                  and number
// (TensorFlow's EagerContext::SelectDevice and placement_utils.cc; there
// host-integers is off by default and metadata has no rule.) Thread-safe.

#ifndef BERTH_OP_CHOOSE_DEVICE_H_
#define BERTH_OP_CHOOSE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "berth/dtype.h"
#include "berth/errors.h"
#include "device/device_name.h"

namespace berth {

class OpDef;

// Lengths, axes and the like: wanted on the host, too few for a GPU.
inline bool few_integers(DType dtype, int64_t elements) {
  return (dtype == int32 || dtype == int64) && elements <= 64;
}

// True when a request gives a type or a number; null: there is none.
inline bool asks_for_device(const DeviceName* request) {
  return request && (request->type || request->id);
}

// What the rules look at in one input.
struct ChoiceInput {
  DType dtype = DType::kInvalid;  // resource: a variable's handle
  int device = -1;  // position of the one that holds its bytes, -1: unknown
  int64_t elements = 0;
};

struct DeviceCall {
  const OpDef* op = nullptr;
  DType dtype = DType::kInvalid;  // what selects the kernel (kernel_dtype())
  std::span<const ChoiceInput> inputs = {};
  // The merged scope; null or without type and number: nobody asked. Job,
  // replica and task then still bind.
  const DeviceName* request = nullptr;
  // Complete names in order of preference.
  std::span<const DeviceName* const> devices = {};
  // True when the device at a position has a kernel or a decomposition.
  std::function<bool(int position)> can_run = {};
  bool soft = true;  // false: policy error
};

enum class ChoiceRule : uint8_t {
  kNone,  // no device
  kResource,
  kRequest,
  kMetadata,
  kHostStrings,
  kHostIntegers,
  kDefault,
  kFallback,
};

// "resource", "host-integers", ...
const char* id_of(ChoiceRule rule);

struct DeviceChoice {
  int position = -1;  // in the list; -1: none, see failure_of()
  ChoiceRule rule = ChoiceRule::kNone;
  int because = -1;  // the input that decided
  // A variable decided and the request names another device.
  bool request_ignored = false;
};

// Applies the rules.
DeviceChoice choose_device(const DeviceCall& call);

// Returns why, in words: "no kernel for int32 on GPU:0", "input 0 is there".
std::string reason_of(const DeviceCall& call, const DeviceChoice& choice);

// What to throw when there is no device: InvalidArgument when the request
// names a device that does not exist, Unimplemented without a kernel.
struct ChoiceFailure {
  errors::Code code = errors::Code::kUnimplemented;
  std::string message;
};
// `place` follows what was wrong: " (model.cc:41)".
ChoiceFailure failure_of(const DeviceCall& call, const std::string& place = "");

}  // namespace berth

#endif  // BERTH_OP_CHOOSE_DEVICE_H_
