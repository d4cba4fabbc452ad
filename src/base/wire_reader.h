// WireReader: reads messages in the encoding of protocol buffers, of any bytes:
// https://protobuf.dev/programming-guides/encoding
//
// Views point into the message. A value.

#ifndef BERTH_BASE_WIRE_READER_H_
#define BERTH_BASE_WIRE_READER_H_

#include <cstdint>
#include <string_view>

namespace berth {
namespace wire {

// How a value is encoded. A length is a varint before the bytes; a group's
// fields follow, up to a tag of its number and kGroupEnd.
enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kDelimited = 2,
  kGroup = 3,
  kGroupEnd = 4,
  kFixed32 = 5
};

constexpr uint32_t tag_of(uint32_t field, WireType type) {
  return field << 3 | type;
}

}  // namespace wire

// Reads the fields of a message, each a tag and a value. All functions fail
// after the first failure.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}

  // Returns the next tag; 0 at the end and after a failure.
  uint32_t tag() {
    uint64_t tag = 0;
    if (at_end() || !varint(&tag)) return 0;
    if (tag >> 3 == 0 || tag > UINT32_MAX) fail();
    return ok_ ? static_cast<uint32_t>(tag) : 0;
  }
  bool at_end() const { return left_.empty(); }
  // Once tag() has returned 0: true at the end of the message.
  bool finished() const { return ok_; }

  // Seven bits per byte, the lowest first; all bytes but the last have a bit
  // more.
  bool varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(left_[0]);
      left_.remove_prefix(1);
      *out |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return ok_;
    }
    return fail();
  }
  bool take(uint64_t n, std::string_view* out) {
    if (n > left_.size()) return fail();
    *out = left_.substr(0, n);
    left_.remove_prefix(n);
    return ok_;
  }
  bool view(std::string_view* out) {
    uint64_t n = 0;
    return varint(&n) && take(n, out);
  }
  // 64 bits, the lowest byte first.
  bool fixed64(uint64_t* out) {
    std::string_view bytes;
    if (!take(8, &bytes)) return false;
    *out = 0;
    for (int i = 7; i >= 0; --i) {
      *out = *out << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
    }
    return true;
  }
  // Passes over the value after a tag.
  bool skip(uint32_t tag, int depth = 0) {
    uint64_t number = 0;
    std::string_view bytes;
    switch (tag & 7) {
      case wire::kVarint:
        return varint(&number);
      case wire::kFixed64:
        return take(8, &bytes);
      case wire::kDelimited:
        return view(&bytes);
      case wire::kFixed32:
        return take(4, &bytes);
      case wire::kGroup:
        return depth < kMostGroups ? skip_group(tag, depth + 1) : fail();
      default:
        return fail();
    }
  }

 private:
  static constexpr int kMostGroups = 100;  // in each other

  bool skip_group(uint32_t begin, int depth) {
    while (const uint32_t tag = this->tag()) {
      if (tag == wire::tag_of(begin >> 3, wire::kGroupEnd)) return true;
      if (!skip(tag, depth)) return false;
    }
    return fail();
  }
  bool fail() { return ok_ = false; }

  bool ok_ = true;
  std::string_view left_;
};

}  // namespace berth

#endif  // BERTH_BASE_WIRE_READER_H_
