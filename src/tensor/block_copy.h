// Copies of bytes from block to block, as work of a stream.

#ifndef BERTH_TENSOR_BLOCK_COPY_H_
#define BERTH_TENSOR_BLOCK_COPY_H_

#include "device/block.h"
#include "device/stream.h"

namespace berth {

// Launches a copy of the first `bytes` of `source` to `target` on `stream`,
// one of target's device; both blocks live until it has ended. The caller sees
// to the order. `what` is static text for errors and traces.
void launch_block_copy(Stream& stream, BlockRef target, BlockRef source,
                       size_t bytes, const char* what);

}  // namespace berth

#endif  // BERTH_TENSOR_BLOCK_COPY_H_
