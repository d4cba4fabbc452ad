// mixed_precision: layers that compute in 16 bits (tf.keras.mixed_precision).
//
//   keras::mixed_precision::set_global_policy("mixed_bfloat16");
//   auto model = keras::Sequential(
//       {keras::Dense(256, {.activation = "relu"}),
//        keras::Dense(10, {.dtype = "float32"})});
//
// A layer takes the global policy when it is made. Under a mixed one its
// weights are float32; call() gets floating inputs, and trainable weights when
// it reads them, in the compute dtype, and gradients of weights are float32.
// Normalizations keep weights and moments in float32; losses and metrics are
// computed in float32. Thread-safe.

#ifndef BERTH_KERAS_MIXED_PRECISION_H_
#define BERTH_KERAS_MIXED_PRECISION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "berth/dtype.h"

namespace berth::keras {

class DTypePolicy {
 public:
  DTypePolicy() = default;  // "float32"
  // "float32", "mixed_bfloat16" or "mixed_float16". Throws
  // errors::InvalidArgument for another name.
  DTypePolicy(const std::string& name);  // NOLINT: set_dtype_policy("float32")
  DTypePolicy(const char* name) : DTypePolicy(std::string(name)) {}  // NOLINT
  // float32. Throws errors::InvalidArgument for another dtype: weights are
  // float32, and the mixed policies compute in 16 bits.
  DTypePolicy(DType dtype);  // NOLINT

  const std::string& name() const;
  DType compute_dtype() const;
  DType variable_dtype() const { return float32; }
  bool operator==(const DTypePolicy&) const = default;

 private:
  uint8_t row_ = 0;
};

// A layer's own policy among its options, {.dtype = "float32"}; absent: the
// global one.
using OwnPolicy = std::optional<DTypePolicy>;

namespace mixed_precision {

using Policy = DTypePolicy;

// Applies to layers made from now on, by any thread.
void set_global_policy(const DTypePolicy& policy);
DTypePolicy global_policy();
// Keras 3's names.
inline void set_dtype_policy(const DTypePolicy& p) { set_global_policy(p); }
inline DTypePolicy dtype_policy() { return global_policy(); }

}  // namespace mixed_precision
}  // namespace berth::keras

#endif  // BERTH_KERAS_MIXED_PRECISION_H_
