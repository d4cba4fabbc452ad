// Writer and Reader: numbers and texts as bytes of a message between tasks.
//
// All numbers are 8 bytes, little-endian. A reader throws
// errors::InvalidArgument for truncated bytes; it never reads beyond them.
// Values; one thread.

#ifndef BERTH_REMOTE_MESSAGE_CODEC_H_
#define BERTH_REMOTE_MESSAGE_CODEC_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "berth/errors.h"
#include "berth/shape.h"
#include "berth/tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::remote {

class Writer {
 public:
  Writer& number(uint64_t n) {
    bytes_.append(reinterpret_cast<const char*>(&n), sizeof(n));
    return *this;
  }
  Writer& number(int64_t n) { return number(static_cast<uint64_t>(n)); }
  Writer& number(int n) { return number(static_cast<uint64_t>(int64_t{n})); }
  Writer& real(double x) { return number(std::bit_cast<uint64_t>(x)); }
  Writer& address(const void* p) {
    return number(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p)));
  }
  Writer& text(std::string_view s) {
    number(static_cast<uint64_t>(s.size()));
    bytes_.append(s);
    return *this;
  }
  Writer& shape(const Shape& s) {
    number(s.rank());
    for (const int64_t d : s) number(d);
    return *this;
  }
  // Appends the bytes unchanged.
  Writer& raw(std::string_view s) {
    bytes_.append(s);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool done() const { return bytes_.empty(); }
  uint64_t number() {
    uint64_t n;
    std::memcpy(&n, take(sizeof(n)).data(), sizeof(n));
    return n;
  }
  int64_t signed_number() { return static_cast<int64_t>(number()); }
  double real() { return std::bit_cast<double>(number()); }
  // A count of following items of at least `least` bytes each.
  size_t count(size_t least = sizeof(uint64_t)) {
    const uint64_t n = number();
    if (n > bytes_.size() / least) fail();
    return static_cast<size_t>(n);
  }
  // A number from 0 to end - 1.
  size_t below(size_t end) {
    const uint64_t n = number();
    if (n >= end) fail();
    return static_cast<size_t>(n);
  }
  std::string_view text() { return take(count(1)); }
  Shape shape() {
    Shape s;
    const size_t rank = below(static_cast<size_t>(kMaxRank) + 1);
    for (size_t d = 0; d < rank; ++d) s.push_back(signed_number());
    return s;
  }

 private:
  [[noreturn]] static void fail() {
    throw errors::InvalidArgument(
        "a message between tasks is malformed; expected the same build of "
        "Berth on both");
  }
  std::string_view take(size_t n) {
    if (n > bytes_.size()) fail();
    const std::string_view taken = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return taken;
  }
  std::string_view bytes_;
};

// Bytes as a tensor in host memory, and back: the contents of a message.
Tensor tensor_of(const void* data, size_t bytes);
inline Tensor tensor_of(std::string_view bytes) {
  return tensor_of(bytes.data(), bytes.size());
}
// Throws errors::InvalidArgument for a tensor of another dtype.
std::string_view bytes_of(const Tensor& t);

}  // namespace berth::remote

#endif  // BERTH_REMOTE_MESSAGE_CODEC_H_
