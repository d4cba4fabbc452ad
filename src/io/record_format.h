// RecordFormat: how records follow each other in a file. Immutable and
// thread-safe; used by the datasets, and by fuzz targets on their own.

#ifndef BERTH_IO_RECORD_FORMAT_H_
#define BERTH_IO_RECORD_FORMAT_H_

#include <cstdint>
#include <string_view>

#include "io/window_reader.h"

namespace berth::io {

// The checksum that TFRecord files store of some bytes.
uint32_t record_checksum(std::string_view bytes);

class RecordFormat {
 public:
  virtual ~RecordFormat() = default;
  // Bytes beyond a record that next() looks at.
  virtual size_t slack() const { return 0; }
  // Reads past what comes before the first record.
  virtual void begin(WindowReader*) const {}
  // Sets `record`, valid until the reader is used again; false at the end of
  // the file. Throws DataLoss, ResourceExhausted, InvalidArgument.
  virtual bool next(WindowReader* reader, std::string_view* record) const = 0;
};

// Length, its checksum, bytes, their checksum (TFRecord). `most` bytes.
class TFRecordFormat : public RecordFormat {
 public:
  explicit TFRecordFormat(size_t most) : most_(most) {}
  size_t slack() const override { return 16; }
  bool next(WindowReader* reader, std::string_view* record) const override;

 private:
  size_t most_;
};

class TextLineFormat : public RecordFormat {
 public:
  size_t slack() const override { return 2; }
  bool next(WindowReader* reader, std::string_view* record) const override;
};

class FixedLengthFormat : public RecordFormat {
 public:
  FixedLengthFormat(size_t header, size_t record, size_t footer)
      : header_(header), record_(record), footer_(footer) {}
  size_t slack() const override { return footer_ + 1; }
  void begin(WindowReader* reader) const override;
  bool next(WindowReader* reader, std::string_view* record) const override;

 private:
  size_t header_, record_, footer_;
};

}  // namespace berth::io

#endif  // BERTH_IO_RECORD_FORMAT_H_
