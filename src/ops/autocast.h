// AutocastScope: reads trainable variables of float32 in another dtype.
//
// Until the end of the block Variable::value() on this thread casts them;
// float32: it does not. The cast is an op after the read, so that tapes give
// gradients of the variable's own dtype. Scopes nest; the innermost counts.

#ifndef BERTH_OPS_AUTOCAST_H_
#define BERTH_OPS_AUTOCAST_H_

#include "berth/dtype.h"

namespace berth {

class AutocastScope {
 public:
  explicit AutocastScope(DType dtype);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const DType outer_;
};

}  // namespace berth

#endif  // BERTH_OPS_AUTOCAST_H_
