// Tensors whose axes have labels, and the product of two of them: what einsum
// and tensordot are made of. One thread.

#ifndef BERTH_OPS_LABELLED_H_
#define BERTH_OPS_LABELLED_H_

#include <vector>

#include "berth/tensor.h"

namespace berth {

using Labels = std::vector<int>;

struct Labelled {
  Tensor t;
  Labels labels;  // of each axis; distinct
};

bool contains(const Labels& labels, int label);

// Returns `x` with its axes in the order of `labels`, which are its own.
Tensor permuted(const Labelled& x, const Labels& labels, Site site);

// Returns `x` summed over the axes whose label is not in `kept`.
Labelled summed(const Labelled& x, const Labels& kept, Site site);

// Returns the product of a and b, summed over the labels that are not in
// `kept`: a MatMul over those that both have, a broadcast Mul when there are
// none. Labels of equal names have equal sizes, or 1 where they are kept.
// Throws errors::InvalidArgument, naming `what`, when axes must be merged of
// which two are unknown.
Labelled contract(const char* what, const Labelled& a, const Labelled& b,
                  const Labels& kept, Site site);

}  // namespace berth

#endif  // BERTH_OPS_LABELLED_H_
