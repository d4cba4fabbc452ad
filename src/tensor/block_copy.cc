#include "tensor/block_copy.h"

#include <utility>

#include "base/recycled.h"
#include "device/device.h"

namespace berth {

void launch_block_copy(Stream& stream, BlockCopy copy, const char* what) {
  if (copy.bytes == 0) return;
  Work work;
  work.what = what;
  work.crosses_link = copy.from != copy.target->device;
  // Within a device they are read and written; a link carries them once.
  work.moved_bytes =
      (work.crosses_link ? 1.0 : 2.0) * static_cast<double>(copy.bytes);
  work.run = [](void* context, Stream& stream) {
    const auto& c = *static_cast<const BlockCopy*>(context);
    stream.device().copy_async(
        stream,
        {c.target->data, &space_of(*c.target.get()), c.data,
         c.source ? &space_of(*c.source.get()) : &c.from->memory(), c.bytes});
  };
  work.drop = [](void* c) {
    Recycled<BlockCopy>::give_back(static_cast<BlockCopy*>(c));
  };
  work.context = Recycled<BlockCopy>::take(std::move(copy));
  stream.launch(work);
}

void launch_block_copy(Stream& stream, BlockRef target, BlockRef source,
                       size_t bytes, const char* what) {
  Device* from = source->device;
  const void* data = source->data;
  launch_block_copy(stream,
                    {.target = std::move(target),
                     .source = std::move(source),
                     .from = from,
                     .data = data,
                     .bytes = bytes},
                    what);
}

}  // namespace berth
