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

namespace berth {

class KernelTable;

// What place() knows about a device. The executor uses the real ones; text
// tests and the command line use hypothetical ones.
struct PlaceDevice {
  std::string name;                      // full name
  const KernelTable* kernels = nullptr;  // null: runs everything
  // When set, says instead of `kernels` what the device can compute.
  std::function<bool(const OpDef& op, DType dtype)> runs = nullptr;
};

// Whose rules: Berth's, or TensorFlow's word for word (docs/placement.md lists
// where they differ).
enum class PlacePolicy : uint8_t { kBerth, kTensorFlow };

struct PlaceOptions {
  std::vector<PlaceDevice> devices;  // in order of preference
  config::SoftPlacement soft = config::SoftPlacement::kWarn;
  PlacePolicy policy = PlacePolicy::kBerth;
};

// The rule that decided, in the order in which rules are asked.
enum class PlaceRule : uint8_t {
  kNone,
  kVariable,   // lives with, or is, the variable `because`
  kRequest,    // the user asked
  kColocated,  // with node `because`
  kConsumers,  // all consumers are there; `because` is one of them
  kInput,      // alias or metadata: where its input `because` is
  kHost,       // an argument whose consumers differ
  kDefault,    // the first device that can run it
};

struct PlaceReason {
  PlaceRule rule = PlaceRule::kNone;
  int32_t because = -1;  // node
};

// Something the user should know: what was asked for and not done.
struct PlaceNote {
  std::string id;  // stable: "request-ignored", "colocation-ignored"
  int32_t node = -1;
  std::string text;
};

// A node that does not run where it was asked to because there is no such
// device, or no kernel there.
struct PlaceFallback {
  int32_t node = -1;
  std::string requested;  // as asked for
  std::string reason;     // "no kernel for int32 on GPU:0"
};

struct Placement {
  std::vector<PlaceReason> reasons;  // per node
  std::vector<PlaceNote> notes;
  std::vector<PlaceFallback> fallbacks;
};

// Sets `assigned` of every node to a full device name. Rules, in order:
//   variables decide for the ops that touch them (VarHandleOp: the device of
//   its variable, else its request, else the default);
//   an explicit request; a colocation (gradients follow their forward op);
//   arguments, constants and other ops without inputs follow their consumers
//   when these agree, arguments else stay on the host (the first CPU);
//   aliases and metadata ops follow their input when nobody asked;
//   otherwise the first device that has a kernel or a decomposition.
// A request may be partial ("GPU"): the first fitting device that can run the
// op. Throws errors::InvalidArgument (no such device, conflicting variables,
// a cycle of colocations) and errors::Unimplemented (no kernel on the device
// asked for), each naming node, source line, request and what is possible.
Placement place(Graph& graph, const PlaceOptions& options);

// Returns one sentence: "on GPU:1: colocated with \"dense/MatMul\"".
std::string explain(const Graph& graph, const Placement& placement,
                    int32_t node);

}  // namespace berth

#endif  // BERTH_PLACE_PLACE_H_
