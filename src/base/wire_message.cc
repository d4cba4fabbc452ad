// Writes fields: https://protobuf.dev/programming-guides/encoding

#include "base/wire_message.h"

#include <bit>

namespace berth {

void WireMessage::varint(uint64_t v) {
  for (; v >= 0x80; v >>= 7) text_ += static_cast<char>(v | 0x80);
  text_ += static_cast<char>(v);
}
void WireMessage::tag(int field, int type) {
  varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type));
}
void WireMessage::fixed(uint64_t bits, int bytes) {
  for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(bits >> (8 * i));
}
WireMessage& WireMessage::number(int field, int64_t value) {
  tag(field, 0);
  varint(static_cast<uint64_t>(value));
  return *this;
}
WireMessage& WireMessage::real(int field, double value) {
  return fixed64(field, std::bit_cast<uint64_t>(value));
}
WireMessage& WireMessage::fixed64(int field, uint64_t value) {
  tag(field, 1);
  fixed(value, 8);
  return *this;
}
WireMessage& WireMessage::packed(uint64_t value) {
  varint(value);
  return *this;
}
WireMessage& WireMessage::single(int field, float value) {
  tag(field, 5);
  fixed(std::bit_cast<uint32_t>(value), 4);
  return *this;
}
WireMessage& WireMessage::bytes(int field, std::string_view value) {
  tag(field, 2);
  varint(value.size());
  text_ += value;
  return *this;
}
WireMessage& WireMessage::reals(int field, const std::vector<double>& values) {
  WireMessage packed;
  for (double v : values) packed.fixed(std::bit_cast<uint64_t>(v), 8);
  return bytes(field, packed.text_);
}

}  // namespace berth
