// SlicingCost: what cutting an op into parts costs, and which ops are added up
// from parts.
//
// A result that is a sum over the parts has other bits than the same result
// computed at once. So whether, along which axis and into how many parts such
// an op is split follows from the op and the number of slices alone: never from
// the region that it is in, nor from the devices of its neighbours. Ops that
// have slices of a batch (NodePart) are split just there, all but elementwise
// ones: kernels may choose their way by the number of rows. Used while a plan
// is built.

#ifndef BERTH_EXEC_SLICING_COST_H_
#define BERTH_EXEC_SLICING_COST_H_

#include <unordered_map>

#include "exec/regions.h"

namespace berth {

class SlicingCost {
 public:
  SlicingCost(const Graph& graph, PartBinder& binder);

  // How an op must be split: by signature number `signature` (-1: it need not,
  // and sums must not) into `parts` parts.
  struct Fixed {
    int signature = -1;
    int parts = 1;
    const PartKernels* kernels = nullptr;
  };
  // The batch is the first axis of the first operand: an op that adds up over
  // it is split there, if that pays, in every region and alone. Tiny ones are
  // not, so that small programs have the bits of eager execution.
  const Fixed& fixed(int32_t node, const RegionStream& stream);

  // Returns the region of `node` alone: whole, or as it must be split.
  Region alone(int32_t node, const RegionStream& stream);

  // Returns the work of cutting beyond the op's share; negative: too much.
  double extra_work(int32_t node, const SplitSignature& split, int parts,
                    const RegionStream& stream);
  const OpWork& cost(int32_t node);

  // True when a result of the cut is a sum over the parts.
  static bool adds(const SplitSignature& split);
  static double work_to_move(const OutSpec& value);

 private:
  Fixed find_slices(int32_t node, const Device& device);
  Fixed find_sum(int32_t node, const RegionStream& stream);
  bool can_add(int32_t node, const SplitSignature& split,
               const Device& device) const;

  const Graph& graph_;
  PartBinder& binder_;
  const OpDef& add_;
  std::unordered_map<int32_t, OpWork> costs_;
  std::unordered_map<int32_t, Fixed> fixed_;
};

}  // namespace berth

#endif  // BERTH_EXEC_SLICING_COST_H_
