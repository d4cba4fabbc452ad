// NodeKernels: which devices have a kernel for a node, and which they prefer.
//
// Looked up once per op and dtype. Priorities belong to device types; a set of
// them is a number, 0 when all are 0. One thread.

#ifndef BERTH_PLACE_NODE_KERNELS_H_
#define BERTH_PLACE_NODE_KERNELS_H_

#include <array>
#include <map>
#include <vector>

#include "place/device_table.h"

namespace berth {

// The dtype that selects the node's kernel.
DType node_dtype(const Graph& graph, const Node& node);

class NodeKernels {
 public:
  struct Class {
    DeviceSet devices = 0;
    int32_t priorities = 0;
  };

  explicit NodeKernels(const DeviceTable& devices) : devices_(devices) {}

  const Class& of(const Graph& graph, const Node& node);

  // Priorities of a set of ops that `devices` can run, some of which have
  // priorities `a` and others `b`. If only one side has non-zero priorities,
  // these; if both have and order the types alike, that order; else none.
  int32_t merge(int32_t a, int32_t b, DeviceSet devices);
  // The preferred one of `devices`, which must not be empty.
  int32_t first(DeviceSet devices, int32_t priorities) const;

 private:
  int32_t number(std::vector<int> priorities);
  // The device types among `devices`, the preferred one first.
  std::vector<int32_t> order(DeviceSet devices, int32_t priorities) const;
  bool prioritised(DeviceSet devices, int32_t priorities) const;

  Class make(const OpDef& op, DType dtype);

  struct Slot {
    const OpDef* op = nullptr;
    DType dtype = DType::kInvalid;
    const Class* kernels = nullptr;
  };
  const DeviceTable& devices_;
  std::map<std::pair<const OpDef*, DType>, Class> classes_;
  std::array<Slot, 256> slots_;                   // found recently
  std::vector<std::vector<int>> priorities_{{}};  // per device type
  std::map<std::vector<int>, int32_t> numbers_;
};

}  // namespace berth

#endif  // BERTH_PLACE_NODE_KERNELS_H_
