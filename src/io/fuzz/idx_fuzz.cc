// Fuzz target of the IDX and gzip readers: any bytes end in data or in a
// named error, within the declared memory.
//
// The first byte chooses how the rest is given to the reader: as it is, or
// compressed first, so that mutations reach past the gzip checksum.

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "berth/errors.h"
#include "io/idx.h"

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 22;

// Returns `bytes` as one gzip member.
std::vector<uint8_t> gzip(std::span<const uint8_t> bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    std::abort();
  }
  std::vector<uint8_t> out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

// What the reader promises about data it accepts.
void check(const berth::io::IdxData& data) {
  int64_t elements = 1;
  for (const int64_t dim : data.dims) {
    if (dim < 0) std::abort();
    elements *= dim;
  }
  const int64_t width = berth::io::idx_type_bytes(data.dtype);
  const int64_t bytes = static_cast<int64_t>(data.bytes.size());
  if (data.dims.empty() || elements * width != bytes || bytes > kMaxBytes) {
    std::abort();
  }
}

void read(std::span<const uint8_t> file) {
  try {
    check(berth::io::read_idx(file, {.max_bytes = kMaxBytes, .name = "fuzz"}));
  } catch (const berth::errors::Error& error) {
    if (error.what()[0] == 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> file(data + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      read(file);
      break;
    case 1:
      read(gzip(file));
      break;
    case 2: {  // two members, cut in the middle
      std::vector<uint8_t> joined = gzip(file.first(file.size() / 2));
      const auto second = gzip(file.subspan(file.size() / 2));
      joined.insert(joined.end(), second.begin(), second.end());
      read(joined);
      break;
    }
  }
  return 0;
}
