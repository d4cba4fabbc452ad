// SaveBuffer: host memory that values are copied to before they are written.
//
// Its pages stay from one save to the next, so that only the first one waits
// for the system to hand them out. One thread per object.

#ifndef BERTH_IO_PINNED_COPY_H_
#define BERTH_IO_PINNED_COPY_H_

#include <cstddef>
#include <vector>

#include "io/safetensors.h"

namespace berth::io {

class SaveBuffer {
 public:
  SaveBuffer() = default;
  ~SaveBuffer();
  SaveBuffer(const SaveBuffer&) = delete;
  SaveBuffer& operator=(const SaveBuffer&) = delete;

  // Copies the bytes of all tensors of numbers, by several threads, and lets
  // go of variables. Valid until the next call. Throws ResourceExhausted, and
  // what reading a tensor throws.
  void copy(std::vector<TensorToWrite>* tensors, const std::string& subject);

 private:
  void reserve(size_t bytes, const std::string& subject);

  std::byte* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace berth::io

#endif  // BERTH_IO_PINNED_COPY_H_
