// Ops in parts: how a split signature cuts an op of a graph, and the kernels
// that compute the parts.
//
// Part p of n has the elements [length * p / n, length * (p + 1) / n) of every
// axis that is cut, or, of a node that has slices of a batch (NodePart), those
// of the slices; so parts have at most two lengths, each with a kernel of its
// own. Used while a plan is built, by one thread.

#ifndef BERTH_EXEC_PART_KERNELS_H_
#define BERTH_EXEC_PART_KERNELS_H_

#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "device/device.h"
#include "graph/graph.h"
#include "op/kernel.h"
#include "op/view_cut.h"

namespace berth {

// part_begin() of an axis of `node`.
int64_t part_begin(const Node& node, int64_t length, int parts, int part);
// The length of the longest part.
int64_t longest_part(const Node& node, int64_t length, int parts);

// The shape of input 0 of the op on the whole batch; null: no inputs.
const Shape* unsplit_shape(const Graph& graph, const Node& node);

// The kernels of the parts of one op.
struct PartKernels {
  const KernelDef* def = nullptr;
  int64_t length = 0;  // of the shorter parts
  std::array<BoundKernel, 2> bound;

  // The kernel for parts of `n` elements along the cut.
  const BoundKernel& of(int64_t n) const { return bound[n != length]; }
  size_t scratch_bytes() const;
};

class PartBinder {
 public:
  explicit PartBinder(const Graph& graph) : graph_(graph) {}

  // The ways to cut a node; none when it must be computed whole.
  const std::vector<SplitSignature>& signatures(int32_t node);

  // The length of the axes that a signature cuts; -1 when they differ, or
  // there is none, or the slices of the node have no borders there.
  int64_t cut_length(int32_t node, const SplitSignature& split) const;

  // Binds kernels for `parts` parts of a node by signature number `signature`
  // on `device`; null when no kernel takes them, or operands would have to be
  // rows of wider arrays and the kernel does not take that. A node without a
  // kernel (another name for its input's bytes) gives an empty PartKernels.
  const PartKernels* bind(int32_t node, int signature, int parts,
                          const Device& device);

 private:
  std::unique_ptr<PartKernels> make(int32_t node, const SplitSignature& split,
                                    int parts, const Device& device) const;

  const Graph& graph_;
  std::map<int32_t, std::vector<SplitSignature>> signatures_;
  std::map<std::tuple<int32_t, int, int>, std::unique_ptr<PartKernels>> bound_;
};

}  // namespace berth

#endif  // BERTH_EXEC_PART_KERNELS_H_
