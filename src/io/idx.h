// IDX files (the format of MNIST), plain or gzip.
//
// Layout: two zero bytes, a type byte, the number of dimensions, one
// big-endian uint32 per dimension, then the elements row-major, big-endian.
// A damaged file ends in a named error with the byte offset; memory follows
// the bytes that really arrive, never what a header claims. Thread-safe.

#ifndef BERTH_IO_IDX_H_
#define BERTH_IO_IDX_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace berth::io {

enum class IdxType : uint8_t {
  kUint8 = 0x08,
  kInt8 = 0x09,
  kInt16 = 0x0B,
  kInt32 = 0x0C,
  kFloat32 = 0x0D,
  kFloat64 = 0x0E,
};

// Returns the size of one element in bytes.
int idx_type_bytes(IdxType type);

// Returns for example "uint8".
const char* idx_type_name(IdxType type);

struct IdxData {
  IdxType dtype = IdxType::kUint8;
  std::vector<int64_t> dims;   // 1 to 8 of them; a dimension may be 0
  std::vector<uint8_t> bytes;  // row-major, this machine's byte order
};

struct IdxOptions {
  int64_t max_bytes = int64_t{1} << 30;  // of elements, after decompression
  std::string name;                      // in messages; empty: path or "IDX"
};

// Reads a whole IDX file from memory. Throws InvalidArgument when it is not
// an IDX file, ResourceExhausted when it declares more than `max_bytes`,
// DataLoss when it ends early, goes on too long or its gzip data is damaged.
IdxData read_idx(std::span<const uint8_t> file, const IdxOptions& options = {});

// Reads the IDX file at `path`. Throws as above, and NotFound,
// PermissionDenied or Unavailable when the file cannot be opened or read.
IdxData read_idx_file(const std::string& path, const IdxOptions& options = {});

}  // namespace berth::io

#endif  // BERTH_IO_IDX_H_
