// ByteSource: bytes of a file, of memory, or of a gzip stream over either.
//
// Readers of file formats pull from one, so that none of them allocates by
// what a damaged header claims. Memory held is one window of at most 64 KiB.
// Not thread-safe: one thread per source.

#ifndef BERTH_IO_BYTE_SOURCE_H_
#define BERTH_IO_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace berth::io {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Returns the bytes that come next without consuming them; empty only at
  // the end. The span is valid until the next call. Throws DataLoss when the
  // stream is damaged, Unavailable when the file cannot be read.
  virtual std::span<const uint8_t> peek() = 0;

  // Consumes `count` bytes, at most as many as `peek` returned.
  virtual void skip(size_t count) = 0;

  // Bytes consumed since the start, in the decompressed stream.
  virtual uint64_t offset() const = 0;

  // Describes where reading stands, for messages: "byte 16", or "byte 16 of
  // the decompressed data, byte 40 of the file".
  virtual std::string position() const = 0;

  // Bytes that are certainly left, or -1 when that is unknown (gzip).
  virtual int64_t bytes_left() const = 0;

  // Copies up to `out.size()` bytes; fewer only at the end.
  size_t read(std::span<uint8_t> out);
};

// Reads `bytes`, which must outlive the source.
std::unique_ptr<ByteSource> memory_source(std::span<const uint8_t> bytes);

// Opens the regular file `path`, or a copy of what a URL names (base/urls.h).
// Throws NotFound, PermissionDenied, and InvalidArgument for a directory, pipe
// or device (which could block), and for a URL that nothing fetches.
std::unique_ptr<ByteSource> file_source(const std::string& path);

// Returns `raw`, or a decompressing source over it when it starts with the
// gzip magic. Follows several members one after another; anything else after
// a member throws DataLoss. `name` goes into messages.
std::unique_ptr<ByteSource> gunzip_if_needed(std::unique_ptr<ByteSource> raw,
                                             const std::string& name);

// Throws what errno says of a file that cannot be opened, written or closed
// (`what`): NotFound, PermissionDenied, ResourceExhausted or Unavailable.
[[noreturn]] void raise_write(const std::string& where, const char* what,
                              const std::string& path);

enum class Compression { kNone, kGzip, kZlib };

// Reads "", "GZIP" or "ZLIB" into `to`; false for anything else.
bool parse_compression(const std::string& name, Compression* to);

// Returns `raw`, or a decompressing source over it. An empty file is empty.
// Throws DataLoss for a file that does not begin as `compression` does.
std::unique_ptr<ByteSource> decompress(std::unique_ptr<ByteSource> raw,
                                       Compression compression,
                                       const std::string& name);

}  // namespace berth::io

#endif  // BERTH_IO_BYTE_SOURCE_H_
