// WindowReader: the unread bytes of a ByteSource as one piece of text.
//
// Readers of records ask for as many bytes as a record has and get a view of
// them, mostly without a copy of their own. The buffer grows with the bytes
// that arrive, up to a bound. Not thread-safe.

#ifndef BERTH_IO_WINDOW_READER_H_
#define BERTH_IO_WINDOW_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.h"

namespace berth::io {

class WindowReader {
 public:
  // `most`: bytes that a record may have; `name` goes into messages.
  WindowReader(std::unique_ptr<ByteSource> source, std::string name,
               size_t most);

  // All unread bytes that are in memory. Valid until more() or ensure().
  std::string_view view() const {
    return {buffer_.data() + begin_, end_ - begin_};
  }
  // Reads on; false at the end of the file. Throws ResourceExhausted when
  // `most` bytes and more are unread.
  bool more();
  // Returns view() once it has `count` bytes; shorter at the end of the file.
  std::string_view ensure(size_t count) {
    while (end_ - begin_ < count && more()) {
    }
    return view();
  }
  void consume(size_t count) {
    begin_ += count;
    offset_ += count;
  }
  // Consumes up to `count` bytes and returns how many there were.
  uint64_t skip(uint64_t count);

  // Bytes consumed, of the decompressed file.
  uint64_t offset() const { return offset_; }
  const std::string& name() const { return name_; }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string name_;
  size_t most_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace berth::io

#endif  // BERTH_IO_WINDOW_READER_H_
