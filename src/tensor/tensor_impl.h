// TensorImpl: what a Tensor handle points to.
//
// Pooled per thread; a concrete one has a block, a symbolic one a place in a
// trace, a resource one a VariableState. Immutable after construction except
// the tape slot.

#ifndef BERTH_TENSOR_TENSOR_IMPL_H_
#define BERTH_TENSOR_TENSOR_IMPL_H_

#include <atomic>
#include <cstddef>

#include "berth/tensor.h"
#include "device/block.h"
#include "device/device.h"

namespace berth {

struct VariableState;

enum class TensorKind : uint8_t { kConcrete, kSymbolic, kVariable };

struct TensorImpl {
  std::atomic<int32_t> references{1};  // first: Tensor counts it inline
  DType dtype = DType::kInvalid;
  TensorKind kind = TensorKind::kConcrete;
  Shape shape;
  Block* block = nullptr;  // owned reference; concrete only
  size_t byte_offset = 0;
  Device* device = nullptr;  // where the op ran
  // Where the first tape that saw this tensor keeps it: serial << 32 | index.
  std::atomic<uint64_t> tape_slot{0};
  // Symbolic: the trace and the value in it.
  uint64_t trace = 0;  // serial of the tracer
  int32_t node = -1;
  int32_t output = 0;
  VariableState* variable = nullptr;  // owned; kVariable only

  std::byte* data() const { return block->data + byte_offset; }
  size_t size_bytes() const {
    return static_cast<size_t>(shape.num_elements()) * size_of(dtype);
  }
};

// Returns an impl from the calling thread's pool with one reference.
TensorImpl* new_tensor_impl();

// No shape that asks for memory has more; sizes in bytes then do not overflow.
inline constexpr int64_t kMostElements = int64_t{1} << 48;

// Returns an uninitialised tensor on `device`.
// Throws errors::ResourceExhausted when its memory is full.
Tensor make_tensor(Device& device, DType dtype, const Shape& shape);

// Returns one on /CPU:0, in pinned memory: for bytes that another device will
// read. Empty when no device wants such memory, or none is left.
Tensor make_pinned_tensor(DType dtype, const Shape& shape);

// Returns a tensor that shares the bytes of `base` from `byte_offset` on.
Tensor make_alias(const Tensor& base, const Shape& shape,
                  size_t byte_offset = 0);

// Returns a symbolic tensor.
Tensor make_symbolic(uint64_t trace, int32_t node, int32_t output, DType dtype,
                     const Shape& shape);

// Copies a tensor to `device` through its compute stream; returns `t` itself
// when it is there already. The result may still be on its way.
Tensor copy_to_device(const Tensor& t, Device& device);

// Returns a tensor on `device` whose bytes nobody else changes: `t` itself
// when that is true of it already, else a copy.
Tensor own_copy(const Tensor& t, Device& device);

}  // namespace berth

#endif  // BERTH_TENSOR_TENSOR_IMPL_H_
