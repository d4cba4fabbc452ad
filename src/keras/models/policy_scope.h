// PolicyScope: layers that this thread makes until the end of the block have
// this policy, whatever the global one is; configs say which.

#ifndef BERTH_KERAS_MODELS_POLICY_SCOPE_H_
#define BERTH_KERAS_MODELS_POLICY_SCOPE_H_

#include "berth/keras/mixed_precision.h"

namespace berth::keras {

class PolicyScope {
 public:
  explicit PolicyScope(const DTypePolicy& policy);
  ~PolicyScope();
  PolicyScope(const PolicyScope&) = delete;
  PolicyScope& operator=(const PolicyScope&) = delete;

  // That of the innermost scope, else the global one.
  static DTypePolicy current();

 private:
  const DTypePolicy policy_;
  const PolicyScope* const outer_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_POLICY_SCOPE_H_
