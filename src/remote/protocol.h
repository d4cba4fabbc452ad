// Commands: requests of one task to the devices of another.
//
// A message of service kDevices has commands in its first tensor, back to back,
// each as the number of tensors that it carries, its length and its bytes; the
// other tensors are what they carry. Commands run in that order, and messages
// of one sender in the order in which they were sent. After a failure all
// commands that touch values are skipped until kReset. The answer's first
// tensor lists the commands that answered and the failure; then come the
// answers.

#ifndef BERTH_REMOTE_PROTOCOL_H_
#define BERTH_REMOTE_PROTOCOL_H_

#include <cstdint>

namespace berth::remote {

inline constexpr const char* kDevices = "berth.devices";
// Values between tasks: see Mailbox.
inline constexpr const char* kTensors = "berth.tensors";

enum class Command : uint64_t {
  kHello,     // session, build -> devices
  kMap,       // device, address, bytes
  kUnmap,     // address
  kWrite,     // device, address; carries the bytes
  kRead,      // device, address, bytes -> the bytes
  kCopy,      // device, address, from device, from address, bytes
  kFill,      // device, address, value, bytes
  kBind,      // kernel, device, unsplit, graph text of one op -> success
  kUnbind,    // kernel
  kRun,       // kernel, addresses of scratch, counter, inputs, outputs
  kSend,      // task, key, device, address, bytes
  kReceive,   // key, device, address, bytes
  kCompile,   // part, see part.h -> figures
  kRunPart,   // part, run, step, addresses of arguments and results
  kDropPart,  // part
  kReset,     // clears a failure
};

}  // namespace berth::remote

#endif  // BERTH_REMOTE_PROTOCOL_H_
