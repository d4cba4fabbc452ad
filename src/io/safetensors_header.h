// The header of a safetensors file: which tensors, and where their bytes are.
//
// A file is 8 bytes of length (little-endian), so many bytes of JSON, then the
// data. A header that is accepted has no holes and no overlaps: entry by entry
// it covers the data. Pure.

#ifndef BERTH_IO_SAFETENSORS_HEADER_H_
#define BERTH_IO_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::io {

// The format's own limit.
inline constexpr uint64_t kMostHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string type;  // as in the file: "F32"
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // in the data
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
};

// Returns the bytes of an element; 0 for types that are not known.
uint64_t safetensors_type_bytes(std::string_view type);

// Reads the JSON of a file with so many bytes of data. Messages begin with
// `subject`. Throws DataLoss.
SafetensorsHeader parse_safetensors_header(std::string_view json,
                                           uint64_t data_bytes,
                                           const std::string& subject);

// Returns the first bytes of a file, length and JSON, padded so that data
// begins at a multiple of 64. Throws InvalidArgument for names that are not
// UTF-8, that are used twice or reserved.
std::string print_safetensors_header(const SafetensorsHeader& header,
                                     const std::string& subject);

}  // namespace berth::io

#endif  // BERTH_IO_SAFETENSORS_HEADER_H_
