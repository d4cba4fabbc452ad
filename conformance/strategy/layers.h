// Split layers of a row: layouts that are drawn for the variables of its model.

#ifndef BERTH_CONFORMANCE_STRATEGY_LAYERS_H_
#define BERTH_CONFORMANCE_STRATEGY_LAYERS_H_

#include "berth/model_parallel.h"
#include "conformance/strategy/row.h"

namespace berth::strategy_suite {

// Two of three variables that have an axis to divide are divided, along one of
// these.
distribute::Strategy layers_of(const Row& row,
                               const distribute::Shares& shares);

}  // namespace berth::strategy_suite

#endif  // BERTH_CONFORMANCE_STRATEGY_LAYERS_H_
