// WireMessage: a message in the encoding of protocol buffers that is being
// written. A value.

#ifndef BERTH_BASE_WIRE_MESSAGE_H_
#define BERTH_BASE_WIRE_MESSAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

class WireMessage {
 public:
  WireMessage& number(int field, int64_t value);  // varint
  WireMessage& real(int field, double value);     // 64 bits
  WireMessage& single(int field, float value);    // 32 bits
  WireMessage& fixed64(int field, uint64_t value);
  WireMessage& bytes(int field, std::string_view value);
  WireMessage& message(int field, const WireMessage& m) {
    return bytes(field, m.text_);
  }
  WireMessage& reals(int field, const std::vector<double>& values);  // packed
  // An element of packed numbers: varints without a field.
  WireMessage& packed(uint64_t value);
  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  void clear() { text_.clear(); }

 private:
  void varint(uint64_t v);
  void tag(int field, int type);
  void fixed(uint64_t bits, int bytes);
  std::string text_;
};

}  // namespace berth

#endif  // BERTH_BASE_WIRE_MESSAGE_H_
