// PlaceConstraint, PlaceConflict: what binds nodes to devices and to each
// other, as data, and a smallest set of constraints that cannot all hold.
//
// place() throws a PlaceInvalid or a PlaceNoKernel; both are a PlaceFailure,
// which holds the conflict. Values; thread-safe.

#ifndef BERTH_PLACE_CONFLICT_H_
#define BERTH_PLACE_CONFLICT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "berth/errors.h"
#include "berth/site.h"
#include "place/device_set.h"

namespace berth {

struct PlaceConstraint {
  enum class Kind : uint8_t {
    // What one node allows: `mask`.
    kAssigned,  // placed before, on `what`
    kVariable,  // its variable is on `what`
    kResource,  // a handle (no inputs, one ref or resource) requested on `what`
    kRequest,   // requested on `what`
    kKernels,   // the devices that have a kernel for it
    kHost,      // reads or holds data that only the host can hold: `what`
    // Why `node` shares a device with `other`, whose value it reads or whose
    // group it is in.
    kResourceEdge,
    kRefEdge,
    kVariantEdge,
    kGroup,  // the group `what`
    kCall,   // value `other` passes through, or comes out of, the call `node`
  };
  Kind kind = Kind::kAssigned;
  int32_t node = -1;  // in the graph, or in the body of `function`
  int32_t other = -1;
  std::string what;
  DeviceSet mask = ~DeviceSet();  // bits: positions in PlaceOptions::devices
  Site site = {};                 // of `node`
  std::string text;               // `"w" was asked for on "/GPU:1"`
  std::string node_name = {}, other_name = {};
  // The function whose body has the nodes; "" if they are in the graph.
  std::string function = {};

  bool binary() const { return kind >= Kind::kResourceEdge; }
};

// Constraints that no device satisfies together; if any one is dropped, the
// others can be satisfied.
struct PlaceConflict {
  std::vector<PlaceConstraint> constraints;

  // One constraint per line: `  "w" was asked for on "/GPU:1" (model.cc:41)`.
  std::string str() const;
};

// What every failure of place() offers besides its message. Catch it by
// reference, as well as the class of errors.h.
class PlaceFailure {
 public:
  explicit PlaceFailure(PlaceConflict conflict)
      : conflict_(std::move(conflict)) {}
  virtual ~PlaceFailure() = default;
  const PlaceConflict& conflict() const { return conflict_; }

 private:
  PlaceConflict conflict_;
};

// No such device, or constraints that contradict each other.
class PlaceInvalid : public errors::InvalidArgument, public PlaceFailure {
 public:
  PlaceInvalid(const std::string& message, PlaceConflict conflict)
      : errors::InvalidArgument(message), PlaceFailure(std::move(conflict)) {}
};

// No kernel where the op must run.
class PlaceNoKernel : public errors::Unimplemented, public PlaceFailure {
 public:
  PlaceNoKernel(const std::string& message, PlaceConflict conflict)
      : errors::Unimplemented(message), PlaceFailure(std::move(conflict)) {}
};

}  // namespace berth

#endif  // BERTH_PLACE_CONFLICT_H_
