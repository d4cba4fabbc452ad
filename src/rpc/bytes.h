// Numbers and texts of frames: little-endian; a length precedes each text.
// Values; no I/O.

#ifndef BERTH_RPC_BYTES_H_
#define BERTH_RPC_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "berth/cluster.h"
#include "berth/errors.h"

namespace berth::rpc {

class ByteWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void text(std::string_view s) {
    number<uint32_t>(static_cast<uint32_t>(s.size()));
    text_.append(s);
  }
  void raw(std::string_view s) { text_.append(s); }
  void task(const distribute::TaskId& t) {
    text(t.job);
    number<int32_t>(t.index);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Throws errors::DataLoss if bytes are missing or a text exceeds `most`.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}
  template <class T>
  requires std::is_arithmetic_v<T> T number() {
    T value;
    std::memcpy(&value, raw(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string_view raw(size_t bytes) {
    if (bytes > left_.size()) {
      throw errors::DataLoss("a frame of the cluster ends too early");
    }
    const std::string_view part = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return part;
  }
  std::string text(size_t most) {
    const size_t bytes = number<uint32_t>();
    if (bytes > most) {
      throw errors::DataLoss("a frame of the cluster has a text of " +
                             std::to_string(bytes) + " bytes; at most " +
                             std::to_string(most) + " are allowed there");
    }
    return std::string(raw(bytes));
  }
  distribute::TaskId task() {
    distribute::TaskId t;
    t.job = text(64);
    t.index = number<int32_t>();
    return t;
  }
  size_t left() const { return left_.size(); }
  void end() const {
    if (!left_.empty()) {
      throw errors::DataLoss("a frame of the cluster has bytes too many");
    }
  }

 private:
  std::string_view left_;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_BYTES_H_
