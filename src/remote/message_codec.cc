#include "remote/message_codec.h"

#include <memory>

namespace berth::remote {

// Does not use an allocator, which queries events: the caller holds the lock of
// the line that answers for them.
Tensor tensor_of(const void* data, size_t bytes) {
  std::unique_ptr<std::byte[]> copy(new std::byte[bytes]);
  if (bytes > 0) std::memcpy(copy.get(), data, bytes);
  std::byte* at = copy.release();
  return wrap_memory(at, {static_cast<int64_t>(bytes)}, uint8,
                     [at] { std::default_delete<std::byte[]>()(at); });
}

std::string_view bytes_of(const Tensor& t) {
  if (!t.defined() || t.dtype() != uint8 || t.rank() != 1) {
    throw errors::InvalidArgument(
        "a message between tasks lacks its bytes; expected the same build of "
        "Berth on both");
  }
  return {reinterpret_cast<const char*>(t.impl()->data()),
          static_cast<size_t>(t.num_elements())};
}

}  // namespace berth::remote
