// Elements on top of each other: what every kind of batch does.
//
// Any thread; elements are host tensors.

#ifndef BERTH_DATA_STACK_H_
#define BERTH_DATA_STACK_H_

#include <span>

#include "data/node.h"

namespace berth::data {

// Sets `out` to the elements on top of each other, [elements, ...] for each
// component. Throws errors::InvalidArgument naming `node` when shapes or dtypes
// differ; `first` is the number of the first element.
void stack(const Node& node, std::span<const Tensors> elements, int64_t first,
           Tensors* out);

// Throws the same unless all elements have as many components of the same
// dtypes as the first.
void check_components(const Node& node, std::span<const Tensors> elements,
                      int64_t first);

// Returns a spec that both fit: dimensions that differ are unknown. Throws
// errors::InvalidArgument naming `where` when dtypes or ranks differ.
TensorSpec joined_spec(const std::string& where, size_t component,
                       const TensorSpec& a, const TensorSpec& b);

// Returns the specs of the first element; none where there is no element.
std::vector<TensorSpec> first_specs(ElementStream& pass);

// Returns the specs after that of an int64 scalar.
std::vector<TensorSpec> with_int64(std::vector<TensorSpec> specs);

// Return an int64 scalar, and an int64 vector, on the host.
Tensor int64_scalar(int64_t value);
Tensor int64_vector(std::span<const int64_t> values);

}  // namespace berth::data

#endif  // BERTH_DATA_STACK_H_
