// Mirrors: copies of a variable on devices with a memory of their own.
//
// A variable of a strategy has one home; what the user holds is its handle.
// A replica whose device has another memory computes with a mirror there, made
// when a plan first needs it. Steps of the strategy write home and mirrors
// alike; a write of the home alone (assign, a checkpoint, another function)
// makes the mirrors stale, and a plan that uses one brings it up to date before
// it runs. Thread-safe.

#ifndef BERTH_TENSOR_MIRRORS_H_
#define BERTH_TENSOR_MIRRORS_H_

#include "tensor/variable_state.h"

namespace berth {

// Returns the handle of the mirror of `home` on `device`, a variable
// "name/replica_i" in its own right; `home` itself when `device` shares the
// memory of its device (CPU devices of one process).
Tensor mirror_of(const Tensor& home, Device& device);

// Returns the home of a mirror; an empty tensor for other variables, and when
// the home has ended. The caller holds a home that may be ending.
Tensor home_of(const Tensor& handle);

// The mirrors that exist, in order of creation.
std::vector<Tensor> mirrors_of(const Tensor& home);

// True when the home was written since the mirror was, or the mirror is torn.
// The caller holds the lock of both.
bool is_stale(const VariableState& mirror);

// Copies the home's bytes to the mirror unless it has them. The caller holds
// the lock of both, that of the mirror exclusively, and need not wait: work
// launched later on the mirror's compute stream finds the bytes there. Throws
// errors::FailedPrecondition when the home is torn.
void refresh_mirror(VariableState& mirror);

// Says that the mirror has what its home has by now: both were written alike.
void mark_fresh(VariableState& mirror);

}  // namespace berth

#endif  // BERTH_TENSOR_MIRRORS_H_
