// in_scope: where values that come from outside of the engine go.

#ifndef BERTH_OPS_IN_SCOPE_H_
#define BERTH_OPS_IN_SCOPE_H_

#include "berth/site.h"
#include "berth/tensor.h"

namespace berth {

// Copies values of the host to the device that a scope asks for; without one,
// and for text, returns them as they are.
Tensor in_scope(const Tensor& host, Site site);

}  // namespace berth

#endif  // BERTH_OPS_IN_SCOPE_H_
