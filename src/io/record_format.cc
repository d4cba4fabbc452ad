#include "io/record_format.h"

#include <fmt/format.h>

#include <cstring>

#include "berth/errors.h"
#include "io/checksum.h"

namespace berth::io {
namespace {

uint32_t little32(const char* p) {
  uint8_t b[4];
  std::memcpy(b, p, 4);
  return uint32_t{b[0]} | uint32_t{b[1]} << 8 | uint32_t{b[2]} << 16 |
         uint32_t{b[3]} << 24;
}
uint64_t little64(const char* p) {
  return little32(p) | uint64_t{little32(p + 4)} << 32;
}

[[noreturn]] void record_lost(const WindowReader& reader,
                              const std::string& what) {
  throw errors::DataLoss(fmt::format("{}: the record at byte {} {}",
                                     reader.name(), reader.offset(), what));
}

[[noreturn]] void wrong_length(const WindowReader& reader,
                               std::string_view head) {
  const bool gzip = reader.offset() == 0 && head[0] == '\x1f' &&
                    static_cast<uint8_t>(head[1]) == 0x8b;
  record_lost(reader,
              gzip ? "is none: the file is compressed; pass "
                     "{.compression_type = \"GZIP\"}"
                   : "has a length whose checksum is wrong; expected a "
                     "TFRecord file without damage: write or fetch it again");
}

}  // namespace

uint32_t record_checksum(std::string_view bytes) {
  // Turned and moved, so that it is not a checksum of bytes that hold one.
  const uint32_t crc = checksum(bytes.data(), bytes.size());
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

bool TFRecordFormat::next(WindowReader* reader,
                          std::string_view* record) const {
  constexpr size_t kHead = 12, kTail = 4;
  std::string_view head = reader->view();
  if (head.size() < kHead) head = reader->ensure(kHead);
  if (head.empty()) return false;
  if (head.size() < kHead) {
    record_lost(*reader, fmt::format("ends after {} of the 12 bytes of its "
                                     "head; the file was cut off",
                                     head.size()));
  }
  if (record_checksum(head.substr(0, 8)) != little32(head.data() + 8)) {
    wrong_length(*reader, head);
  }
  const uint64_t length = little64(head.data());
  if (length > most_) {
    throw errors::ResourceExhausted(fmt::format(
        "{}: the record at byte {} has {} bytes; expected at most {}: raise "
        "max_record_bytes",
        reader->name(), reader->offset(), length, most_));
  }
  const size_t all = kHead + length + kTail;
  if (head.size() < all) head = reader->ensure(all);
  if (head.size() < all) {
    record_lost(*reader, fmt::format("ends after {} of its {} bytes; the file "
                                     "was cut off",
                                     head.size(), all));
  }
  *record = head.substr(kHead, length);
  if (record_checksum(*record) != little32(head.data() + kHead + length)) {
    record_lost(*reader,
                "has bytes whose checksum is wrong; the file is "
                "damaged: write or fetch it again");
  }
  reader->consume(all);
  return true;
}

bool TextLineFormat::next(WindowReader* reader,
                          std::string_view* record) const {
  size_t searched = 0;
  for (;;) {
    const std::string_view text = reader->view();
    const size_t end = text.find('\n', searched);
    if (end != text.npos) {
      *record = text.substr(0, end);
      if (!record->empty() && record->back() == '\r') record->remove_suffix(1);
      reader->consume(end + 1);
      return true;
    }
    searched = text.size();
    if (reader->more()) continue;
    *record = reader->view();  // the last line has no end
    reader->consume(record->size());
    return !record->empty();
  }
}

void FixedLengthFormat::begin(WindowReader* reader) const {
  const uint64_t had = reader->skip(header_);
  if (had == header_) return;
  throw errors::DataLoss(
      fmt::format("{}: has {} bytes; expected a header of {}: check "
                  "header_bytes",
                  reader->name(), had, header_));
}

bool FixedLengthFormat::next(WindowReader* reader,
                             std::string_view* record) const {
  const std::string_view text = reader->ensure(record_ + footer_);
  if (text.size() == footer_) {
    reader->consume(footer_);
    return false;
  }
  if (text.size() < record_ + footer_) {
    throw errors::DataLoss(fmt::format(
        "{}: {} bytes are left at byte {}; expected records of {} bytes and a "
        "footer of {}: check record_bytes, header_bytes and footer_bytes",
        reader->name(), text.size(), reader->offset(), record_, footer_));
  }
  *record = text.substr(0, record_);
  reader->consume(record_);
  return true;
}

}  // namespace berth::io
