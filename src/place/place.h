// Place: gives every node of a graph its device, by rules.
//
// Acts between the device-free passes and the partitioner. place() is a pure
// function over a graph and a list of devices, which may be hypothetical; no
// device is touched. One thread per graph.

#ifndef BERTH_PLACE_PLACE_H_
#define BERTH_PLACE_PLACE_H_

#include <functional>
#include <string>
#include <vector>

#include "berth/config.h"
#include "graph/graph.h"
#include "place/conflict.h"

namespace berth {

class KernelTable;

// What place() knows about a device. The executor uses the real ones; text
// tests and the command line use hypothetical ones.
struct PlaceDevice {
  DeviceId name;                         // full name
  const KernelTable* kernels = nullptr;  // null: runs everything
  // If set, replaces `kernels` in telling what the device can compute. Called
  // only for ops of OpKind::kCompute (ops declared in a text are); the dtype is
  // that of the first input that is not a resource, else of output 0.
  std::function<bool(const OpDef& op, DType dtype)> runs = nullptr;
  // Priority of this device type's kernel for the op; null: 0. A higher one
  // takes precedence over everything else.
  std::function<int(const OpDef& op, DType dtype)> priority = nullptr;
  // Ops of another kind for which `runs` is called nevertheless: an Identity, a
  // call or an argument that runs only where this is declared. Null: none.
  std::function<bool(const OpDef& op)> declares = nullptr;
};

// Whose rules: Berth's, or TensorFlow's exactly (docs/placement.md lists the
// differences).
enum class PlacePolicy : uint8_t { kBerth, kTensorFlow };

struct PlaceOptions {
  // At most kMaxPlaceDevices. For kBerth in order of preference; kTensorFlow
  // sorts by itself: GPU before CPU before others, this process before others,
  // then names as strings.
  std::vector<PlaceDevice> devices;
  config::SoftPlacement soft = config::SoftPlacement::kWarn;
  PlacePolicy policy = PlacePolicy::kBerth;
  // For kTensorFlow: the task whose devices come before others of their type
  // (empty: /job:localhost, else that of the first device), and types of
  // devices that come before all others.
  DeviceId local;
  std::vector<std::string> type_order;
  // Nodes with an `assigned` device keep it; otherwise it is dropped.
  bool keep_assigned = true;
};

// The rule that decided, in the order in which rules are tried.
enum class PlaceRule : uint8_t {
  kNone,
  kAssigned,   // was placed before
  kVariable,   // is, or uses, the variable `because`
  kRequest,    // the user asked
  kGroup,      // must share a device with `because`, which decided
  kColocated,  // follows node `because`: gradients
  kConsumers,  // all consumers are there, such as `because`
  kInput,      // alias or metadata: follows its input `because`
  kHost,       // an argument whose consumers differ
  kDefault,    // the first device that can run it
  kPlanned,    // the planner chose (planner/planner.h)
};

struct PlaceReason {
  PlaceRule rule = PlaceRule::kNone;
  int32_t because = -1;  // node
};

// Something the user should know: a request that was not met.
struct PlaceNote {
  std::string id;  // stable: "request-ignored", "colocation-ignored"
  int32_t node = -1;
  std::string text;
};

// A node that does not run where requested because that device does not exist
// or has no kernel.
struct PlaceFallback {
  int32_t node = -1;
  DeviceId requested;  // as requested
  std::string reason;  // "no kernel for int32 on GPU:0"
};

struct Placement {
  std::vector<PlaceReason> reasons;  // per node
  std::vector<int32_t> device;       // per node, index into the devices
  std::vector<PlaceNote> notes;
  std::vector<PlaceFallback> fallbacks;
};

// Sets `assigned` of every node to a full device name.
//
// One mechanism: constraint sets. Nodes that must share a device (they touch
// one variable, pass on a reference or a variant, or are in one group) form a
// set; what its members allow (assigned devices, variables, kernels, host data)
// is intersected, what they request is merged. Then, set by set:
//   what is assigned stays; variables decide for the ops that touch them;
//   an explicit request ("GPU": the first fitting device that can run the set);
//   gradients follow their forward op (kBerth);
//   arguments, constants and other ops without inputs follow their consumers
//   if these agree; otherwise arguments stay on the host (the first CPU);
//   aliases and metadata ops without a request follow their input;
//   otherwise the first device that has all kernels or decompositions.
// With PlacePolicy::kTensorFlow: rules 1-11 of its placer and colocation graph.
//
// A request that cannot be met falls back to the first device of the same task
// (options.soft; kError: an error). Throws PlaceInvalid (no such device,
// constraints that contradict each other) and PlaceNoKernel, each naming node,
// source line, request, what is possible and one change that would help;
// errors::InvalidArgument for a bad list of devices or a cycle of followers.
Placement place(Graph& graph, const PlaceOptions& options);

// Returns one sentence: "on GPU:1: colocated with \"dense/MatMul\"".
std::string explain(const Graph& graph, const Placement& placement,
                    int32_t node);

// Bytes that partition() sends from and to each of the given nodes of a placed
// graph, each value once per destination; values of unknown shape count as
// zero. Partitions a copy of the graph.
std::vector<int64_t> crossing_bytes(const Graph& graph,
                                    const std::vector<int32_t>& nodes);
// Returns those of the nodes of all fallbacks.
std::vector<int64_t> crossing_bytes(const Graph& graph,
                                    const std::vector<PlaceFallback>& of);

// Reports each fallback of a placed, not yet partitioned graph as a warning
// "fallback", once per op and reason, with the bytes per step that are sent
// because of it; kSilent only counts them.
void report_fallbacks(const Graph& graph, const Placement& placement,
                      config::SoftPlacement soft);

// Reports each note as a warning with its id, once per op and line.
void report_notes(const Graph& graph, const Placement& placement,
                  config::SoftPlacement soft);

// One diagnostic "placement" per node: "name: (Op): GPU:0".
void log_placement(const Graph& graph);

}  // namespace berth

#endif  // BERTH_PLACE_PLACE_H_
