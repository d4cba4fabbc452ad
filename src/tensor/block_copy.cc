#include "tensor/block_copy.h"

#include <cstring>
#include <memory>
#include <utility>

#include "device/device.h"

namespace berth {

namespace {

struct Copy {
  BlockRef target, source;
  size_t bytes;
};

void run_copy(void* context, const AddressMap& map) {
  const Copy& c = *static_cast<const Copy*>(context);
  const Device& device = *c.target->device;
  // The threads of cores see no memory but the host's.
  if (c.source->device != &device && device.type() == "CPU") {
    return c.source->device->copy_to_host(c.target->data, c.source->data,
                                          c.bytes);
  }
  std::memcpy(map.translate(c.target->data), map.translate(c.source->data),
              c.bytes);
}

}  // namespace

void launch_block_copy(Stream& stream, BlockRef target, BlockRef source,
                       size_t bytes, const char* what) {
  if (bytes == 0) return;
  Work work;
  work.what = what;
  work.crosses_link = source->device != target->device;
  // Within a device they are read and written; a link carries them once.
  work.moved_bytes =
      (work.crosses_link ? 1.0 : 2.0) * static_cast<double>(bytes);
  work.run = &run_copy;
  work.drop = [](void* c) { std::unique_ptr<Copy>(static_cast<Copy*>(c)); };
  work.context =
      std::make_unique<Copy>(Copy{std::move(target), std::move(source), bytes})
          .release();
  stream.launch(work);
}

}  // namespace berth
