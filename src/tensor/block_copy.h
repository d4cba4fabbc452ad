// Copies of bytes from block to block, as work of a stream.

#ifndef BERTH_TENSOR_BLOCK_COPY_H_
#define BERTH_TENSOR_BLOCK_COPY_H_

#include "berth/tensor.h"
#include "device/block.h"
#include "device/stream.h"

namespace berth {

class Device;

struct BlockCopy {
  BlockRef target;
  BlockRef source;  // null: `variable` has it
  Tensor variable;  // the handle of the variable that has the source, if any
  Device* from = nullptr;      // the device of the source
  const void* data = nullptr;  // the source's first byte
  size_t bytes = 0;
};

// Launches `copy` to the first bytes of its target on `stream`, one of
// target's device; what it names lives until it has ended. The caller sees to
// the order. `what` is static text for errors and traces.
void launch_block_copy(Stream& stream, BlockCopy copy, const char* what);

// Copies the first `bytes` of `source`.
void launch_block_copy(Stream& stream, BlockRef target, BlockRef source,
                       size_t bytes, const char* what);

}  // namespace berth

#endif  // BERTH_TENSOR_BLOCK_COPY_H_
