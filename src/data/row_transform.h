// The functions that make rows out of rows, and the datasets that apply them.
//
// A dataset of slices stays one: its rows are then computed when a batch
// gathers them. The number of a row says which element it is, too, so that
// random numbers are its own: index = element * count + row of the parent, the
// elements of all iterations counted on.

#ifndef BERTH_DATA_ROW_TRANSFORM_H_
#define BERTH_DATA_ROW_TRANSFORM_H_

#include <memory>
#include <span>
#include <vector>

#include "data/component_names.h"
#include "data/pass_state.h"

namespace berth::data {

// Immutable; any thread.
class RowKernel {
 public:
  virtual ~RowKernel() = default;
  virtual const std::vector<TensorSpec>& specs(const Node& node) const = 0;
  // Sets `out` to the results [n, ...] for the parent's rows `indices`;
  // elements[i] is the number of element i of all iterations.
  virtual void run(const Node& node, const RowSource& rows,
                   std::span<const int64_t> indices,
                   std::span<const int64_t> elements, Tensors* out) const = 0;
  // Sets `out` to the result for one element that is not a row.
  virtual void run(const Node& node, const Tensors& element, int64_t number,
                   Tensors* out) const = 0;
  virtual NamesRef names(const Node&) const { return nullptr; }
};

Dataset row_map(const char* what, const Dataset& parent,
                std::shared_ptr<const RowKernel> kernel, Site site);

// The kernel of a function that takes any number of elements: with `names`,
// one that says what its results are called.
std::shared_ptr<const RowKernel> vectorized_kernel(
    MapFunction fn, std::shared_ptr<const ResultNames> names = nullptr);

}  // namespace berth::data

#endif  // BERTH_DATA_ROW_TRANSFORM_H_
