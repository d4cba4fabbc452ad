#include "io/window_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "berth/errors.h"

namespace berth::io {
namespace {

constexpr size_t kFirstBuffer = size_t{256} << 10;

}  // namespace

WindowReader::WindowReader(std::unique_ptr<ByteSource> source, std::string name,
                           size_t most)
    : source_(std::move(source)),
      name_(std::move(name)),
      most_(most),
      buffer_(kFirstBuffer) {}

bool WindowReader::more() {
  const size_t left = end_ - begin_;
  if (left >= most_) {
    throw errors::ResourceExhausted(fmt::format(
        "{}: the record at byte {} is longer than {} bytes; the file is "
        "damaged or of another format, or raise max_record_bytes",
        name_, offset_, most_));
  }
  std::span<const uint8_t> in = source_->peek();
  if (in.empty()) return false;
  if (begin_ > 0 && (left == 0 || buffer_.size() - end_ < in.size())) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, left);
    begin_ = 0;
    end_ = left;
  }
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  // Fills what there is, so that records are rarely cut.
  while (!in.empty() && end_ < buffer_.size()) {
    const size_t n = std::min(in.size(), buffer_.size() - end_);
    std::memcpy(buffer_.data() + end_, in.data(), n);
    source_->skip(n);
    end_ += n;
    if (end_ < buffer_.size()) in = source_->peek();
  }
  return true;
}

uint64_t WindowReader::skip(uint64_t count) {
  uint64_t done = 0;
  while (done < count && (end_ > begin_ || more())) {
    const size_t n = std::min<uint64_t>(end_ - begin_, count - done);
    consume(n);
    done += n;
  }
  return done;
}

}  // namespace berth::io
