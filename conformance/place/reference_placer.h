// ReferencePlacer: TensorFlow's placing rules once more, written plainly.
//
// Sets are lists of nodes and every question is asked anew, so it is slow and
// short. Random graphs are placed by it and by place(); they must agree. No
// variants.

#ifndef BERTH_CONFORMANCE_PLACE_REFERENCE_PLACER_H_
#define BERTH_CONFORMANCE_PLACE_REFERENCE_PLACER_H_

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/device_name.h"

namespace berth::conformance {

struct ReferenceOp {
  std::string name;
  std::vector<std::string> inputs;     // "value", "ref", "resource"
  std::string output = "value";        // or "ref", "resource", "two", "call"
  std::map<std::string, int> kernels;  // device type -> priority
  bool metadata = false;
};

struct ReferenceInput {
  int node = 0, output = 0;
};

struct ReferenceFunction;

struct ReferenceNode {
  const ReferenceOp* op = nullptr;
  std::vector<ReferenceInput> inputs;
  std::string request;
  std::vector<std::string> groups;
  std::string assigned;  // a full name; then the request does not count
  const ReferenceFunction* callee = nullptr;
};

// Takes and returns handles of variables. The first nodes are the arguments.
struct ReferenceFunction {
  std::string name;
  std::vector<ReferenceNode> nodes;
  int num_args = 0;
  std::vector<ReferenceInput> results;
};

struct CannotPlace : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns a full device name per node. Node i is named "n<i>". Throws
// CannotPlace.
std::vector<std::string> place_by_reference(
    const std::vector<ReferenceNode>& nodes,
    const std::vector<std::string>& devices, bool soft);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_PLACE_REFERENCE_PLACER_H_
