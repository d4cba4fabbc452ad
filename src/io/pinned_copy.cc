#include "io/pinned_copy.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/bytes_text.h"
#include "berth/errors.h"
#include "io/parallel_for_files.h"
#include "tensor/tensor_impl.h"

namespace berth::io {

namespace {

constexpr size_t kLine = 64;

size_t copied_bytes(const Tensor& t) {
  if (t.dtype() == string_) return 0;
  return (t.impl()->size_bytes() + kLine - 1) / kLine * kLine;
}

}  // namespace

SaveBuffer::~SaveBuffer() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

void SaveBuffer::reserve(size_t bytes, const std::string& subject) {
  if (bytes <= size_) return;
  if (memory_ != nullptr) munmap(memory_, size_);
  memory_ = nullptr;
  size_ = 0;
  void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) {
    throw errors::ResourceExhausted(
        fmt::format("{}: there are no {} of host memory for the copy that an "
                    "asynchronous save makes; save without enable_async",
                    subject, bytes_text(static_cast<int64_t>(bytes))));
  }
  madvise(fresh, bytes, MADV_HUGEPAGE);
  memory_ = static_cast<std::byte*>(fresh);
  size_ = bytes;
}

void SaveBuffer::copy(std::vector<TensorToWrite>* tensors,
                      const std::string& subject) {
  size_t bytes = 0;
  for (const TensorToWrite& t : *tensors) bytes += copied_bytes(t.value);
  reserve(bytes, subject);
  std::vector<size_t> order;
  std::byte* at = memory_;
  for (size_t i = 0; i < tensors->size(); ++i) {
    TensorToWrite& t = (*tensors)[i];
    if (t.value.dtype() == string_) continue;
    t.copied = at;
    at += copied_bytes(t.value);
    order.push_back(i);
  }
  // The largest first: threads end together.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return copied_bytes((*tensors)[a].value) >
           copied_bytes((*tensors)[b].value);
  });
  parallel_for(order.size(), bytes, [&](size_t i) {
    const TensorToWrite& t = (*tensors)[order[i]];
    copy_pieces(t.value, const_cast<std::byte*>(t.copied));
  });
  // Only what is said of them is needed from now on.
  for (TensorToWrite& t : *tensors) {
    if (t.copied == nullptr) continue;
    t.value = wrap_memory(const_cast<std::byte*>(t.copied), t.value.shape(),
                          t.value.dtype(), [] {});
  }
}

}  // namespace berth::io
