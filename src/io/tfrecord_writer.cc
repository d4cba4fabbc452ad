// TFRecordWriter.

#include <fmt/format.h>
#include <zlib.h>

#include <cstdio>
#include <utility>

#include "base/urls.h"
#include "base/where.h"
#include "berth/io.h"
#include "io/byte_source.h"
#include "io/record_format.h"
#include "io/text_input.h"

namespace berth::io {
namespace {

constexpr size_t kDeflateWindow = size_t{64} << 10;

void put_little(uint64_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) *to += static_cast<char>(value >> 8 * i);
}

}  // namespace

struct TFRecordWriter::State {
  State(const std::string& path, Compression compression, int level, Site site)
      : path(path),
        where(call_text("TFRecordWriter", site)),
        compressed(compression != Compression::kNone) {
    refuse_url(path, where);
    file = std::fopen(path.c_str(), "wbe");
    if (file == nullptr) fail("open");
    if (!compressed) return;
    // A window of 15 bits; 16 more ask for gzip's frame.
    const int bits = compression == Compression::kGzip ? 15 + 16 : 15;
    if (deflateInit2(&stream, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      std::fclose(std::exchange(file, nullptr));
      throw errors::ResourceExhausted(where + ": no memory to compress with");
    }
  }
  ~State() {
    try {
      close();
    } catch (const errors::Error&) {  // close() reports it
    }
    if (compressed) deflateEnd(&stream);
  }

  [[noreturn]] void fail(const char* what) { raise_write(where, what, path); }

  void put(std::string_view bytes) {
    if (file == nullptr) {
      throw errors::FailedPrecondition(where +
                                       ": a record for a file that is closed");
    }
    if (!compressed) return put_raw(bytes.data(), bytes.size());
    deflate_some(bytes, Z_NO_FLUSH);
  }

  void deflate_some(std::string_view bytes, int flush) {
    char window[kDeflateWindow];
    do {
      const size_t part = std::min<size_t>(bytes.size(), 1 << 30);
      stream.next_in =
          reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(part);
      do {
        stream.next_out = reinterpret_cast<Bytef*>(window);
        stream.avail_out = kDeflateWindow;
        deflate(&stream, flush);
        put_raw(window, kDeflateWindow - stream.avail_out);
      } while (stream.avail_out == 0);
      bytes.remove_prefix(part);
    } while (!bytes.empty());
  }

  void put_raw(const char* p, size_t n) {
    if (n > 0 && std::fwrite(p, 1, n, file) != n) fail("write");
  }

  void flush() {
    if (file == nullptr) return;
    if (compressed) deflate_some({}, Z_SYNC_FLUSH);
    if (std::fflush(file) != 0) fail("write");
  }

  void close() {
    if (file == nullptr) return;
    try {
      if (compressed) deflate_some({}, Z_FINISH);
    } catch (...) {
      std::fclose(std::exchange(file, nullptr));
      throw;
    }
    if (std::fclose(std::exchange(file, nullptr)) != 0) fail("close");
  }

  std::string path, where;
  std::FILE* file = nullptr;
  bool compressed;
  z_stream stream{};
};

TFRecordWriter::TFRecordWriter(const std::string& path,
                               const TFRecordOptions& options, Site site) {
  Compression compression;
  if (!parse_compression(options.compression_type, &compression) ||
      options.compression_level < 0 || options.compression_level > 9) {
    throw errors::InvalidArgument(fmt::format(
        "{}: compression_type \"{}\", level {}; expected \"\", \"GZIP\" or "
        "\"ZLIB\", and 0 to 9",
        call_text("TFRecordWriter", site), options.compression_type,
        options.compression_level));
  }
  state_ = std::make_unique<State>(path, compression, options.compression_level,
                                   site);
}
TFRecordWriter::TFRecordWriter(TFRecordWriter&&) noexcept = default;
TFRecordWriter& TFRecordWriter::operator=(TFRecordWriter&&) noexcept = default;
TFRecordWriter::~TFRecordWriter() = default;

void TFRecordWriter::write(std::string_view record) {
  std::string head;
  put_little(record.size(), 8, &head);
  put_little(record_checksum(head), 4, &head);
  std::string tail;
  put_little(record_checksum(record), 4, &tail);
  state_->put(head);
  state_->put(record);
  state_->put(tail);
}

void TFRecordWriter::write(const Tensor& record) {
  write(scalar_text(record, "TFRecordWriter::write", Site{}));
}

void TFRecordWriter::flush() { state_->flush(); }
void TFRecordWriter::close() { state_->close(); }

}  // namespace berth::io
