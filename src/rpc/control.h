// Frames between a member and the coordinator. All have the same layout; unused
// fields are empty. Values; no I/O.

#ifndef BERTH_RPC_CONTROL_H_
#define BERTH_RPC_CONTROL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/cluster.h"

namespace berth::rpc {

using distribute::TaskId;

enum class FrameType : uint8_t {
  kNone = 0,
  // To the coordinator.
  kRegister,  // tasks[0], last known generation, flag: shrink; name: network
  kBarrier,   // name, id: round
  kLate,      // name, id: the barrier timed out; value: seconds
  kPut,       // name, text
  kGet,       // name, id
  kFail,      // code, task, text: cause, step; flag: its connection broke
  kDone,      // the task has finished its part
  kLeft,      // the task leaves: not a failure
  // To members.
  kRefused,     // code, text
  kWaiting,     // text: the tasks it waits for
  kGo,          // generation, tasks
  kBarrierMet,  // name, id
  kValue,       // id, text
  kAbort,       // code, task, name: cause, text: message, step
  kAllDone,
  kGone,  // task, text: cause; the generation continues without it
  kBack,  // tasks[0]
  // Both directions.
  kHeartbeat,  // step
};
inline constexpr FrameType kLastFrame = FrameType::kHeartbeat;

// One task of a generation.
struct TaskEntry {
  TaskId task;
  std::string address;
  std::string host;     // host_id()
  std::string process;  // "process 12 on node-3"
  uint64_t incarnation = 0;
  bool operator==(const TaskEntry&) const = default;
};

struct Frame {
  FrameType type = FrameType::kNone;
  uint64_t generation = 0;
  TaskId task;
  uint64_t id = 0;
  int32_t code = 0;
  int64_t step = -1;
  double value = 0;
  bool flag = false;
  std::string name, text;
  std::vector<TaskEntry> tasks;
  bool operator==(const Frame&) const = default;
};

// Larger values in the store are refused, larger causes of failures truncated.
inline constexpr size_t kMostFrameBytes = 64 << 20;

std::string encode(const Frame& frame);
// Throws errors::DataLoss.
Frame parse_frame(std::string_view bytes);

}  // namespace berth::rpc

#endif  // BERTH_RPC_CONTROL_H_
