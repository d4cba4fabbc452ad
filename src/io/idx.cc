#include "io/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "berth/errors.h"
#include "io/byte_source.h"

namespace berth::io {
namespace {

constexpr int kMaxDims = 8;
// Payload memory grows with what arrives, starting here.
constexpr int64_t kFirstChunkBytes = int64_t{1} << 20;

struct Reader {
  ByteSource& source;
  const IdxOptions& options;

  // Reads exactly `out.size()` bytes of the header field `what`.
  void header(std::span<uint8_t> out, const char* what) {
    const size_t got = source.read(out);
    if (got == out.size()) return;
    throw errors::DataLoss(fmt::format(
        "{}: the file ends at {}, inside {}; expected {} more bytes; fetch the "
        "file again",
        options.name, source.position(), what, out.size() - got));
  }

  void magic(IdxData* data, int* rank) {
    uint8_t head[4];
    header(head, "the 4-byte IDX magic");
    if (head[0] != 0 || head[1] != 0) {
      throw errors::InvalidArgument(fmt::format(
          "{}: not an IDX file: it starts with bytes {:02x} {:02x} {:02x} "
          "{:02x}; expected 00 00, a type (08 for uint8) and the number of "
          "dimensions; give an MNIST-style file, plain or gzip",
          options.name, head[0], head[1], head[2], head[3]));
    }
    data->dtype = static_cast<IdxType>(head[2]);
    if (idx_type_bytes(data->dtype) == 0) {
      throw errors::InvalidArgument(fmt::format(
          "{}: unknown element type 0x{:02x} at byte 2; expected 08 (uint8), "
          "09 (int8), 0b (int16), 0c (int32), 0d (float32) or 0e (float64)",
          options.name, head[2]));
    }
    *rank = head[3];
    if (*rank < 1 || *rank > kMaxDims) {
      throw errors::InvalidArgument(
          fmt::format("{}: {} dimensions declared at byte 3; expected 1 to {}",
                      options.name, *rank, kMaxDims));
    }
  }

  // Reads the dimensions and returns the bytes of elements they declare.
  int64_t dims(IdxData* data, int rank) {
    bool overflow = false;
    int64_t elements = 1;
    for (int i = 0; i < rank; ++i) {
      uint8_t b[4];
      header(b, "the dimensions");
      const int64_t dim = int64_t{b[0]} << 24 | int64_t{b[1]} << 16 |
                          int64_t{b[2]} << 8 | int64_t{b[3]};
      data->dims.push_back(dim);
      // An empty tensor's other dimensions must multiply without overflow
      // too: strides are computed from them.
      overflow |= __builtin_mul_overflow(elements, std::max<int64_t>(dim, 1),
                                         &elements);
    }
    int64_t bytes = 0;
    overflow |= __builtin_mul_overflow(
        elements, int64_t{idx_type_bytes(data->dtype)}, &bytes);
    const bool empty = std::ranges::count(data->dims, 0) > 0;
    if (!overflow && empty) bytes = 0;
    if (overflow || bytes > options.max_bytes) {
      throw errors::ResourceExhausted(fmt::format(
          "{}: dimensions [{}] of {} (bytes 4 to {}) declare {} bytes of "
          "elements; expected at most {}; the header is damaged, or raise "
          "max_bytes",
          options.name, fmt::join(data->dims, ", "), idx_type_name(data->dtype),
          3 + 4 * rank, overflow ? "more than 2^63" : fmt::format("{}", bytes),
          options.max_bytes));
    }
    return bytes;
  }

  void elements(IdxData* data, int64_t bytes) {
    const int64_t left = source.bytes_left();
    const bool certain = left >= bytes;
    int64_t got = 0;
    while (got < bytes) {
      const int64_t grown = std::max(kFirstChunkBytes, 2 * got);
      const int64_t end = certain ? bytes : std::min(bytes, grown);
      data->bytes.resize(static_cast<size_t>(end));
      got += static_cast<int64_t>(
          source.read(std::span(data->bytes).subspan(got)));
      if (got < end) break;
    }
    if (got == bytes) return;
    throw errors::DataLoss(fmt::format(
        "{}: the file ends after {} bytes of elements; expected {} from its "
        "dimensions [{}] of {}; fetch the file again",
        options.name, got, bytes, fmt::join(data->dims, ", "),
        idx_type_name(data->dtype)));
  }

  void end(int64_t bytes) {
    if (source.peek().empty()) return;
    throw errors::DataLoss(fmt::format(
        "{}: more data follows at {}; expected the end after the {} bytes of "
        "elements that the header declares; the header is damaged or two "
        "files were joined",
        options.name, source.position(), bytes));
  }
};

// IDX is big-endian; most machines are not.
void to_host_order(IdxData* data) {
  const size_t width = static_cast<size_t>(idx_type_bytes(data->dtype));
  if (width == 1 || std::endian::native == std::endian::big) return;
  for (size_t at = 0; at < data->bytes.size(); at += width) {
    std::reverse(data->bytes.begin() + at, data->bytes.begin() + at + width);
  }
}

IdxData read_source(std::unique_ptr<ByteSource> raw,
                    const IdxOptions& options) {
  const auto source = gunzip_if_needed(std::move(raw), options.name);
  Reader reader{*source, options};
  IdxData data;
  int rank = 0;
  reader.magic(&data, &rank);
  const int64_t bytes = reader.dims(&data, rank);
  reader.elements(&data, bytes);
  reader.end(bytes);
  to_host_order(&data);
  return data;
}

}  // namespace

int idx_type_bytes(IdxType type) {
  switch (type) {
    case IdxType::kUint8:
    case IdxType::kInt8:
      return 1;
    case IdxType::kInt16:
      return 2;
    case IdxType::kInt32:
    case IdxType::kFloat32:
      return 4;
    case IdxType::kFloat64:
      return 8;
  }
  return 0;
}

const char* idx_type_name(IdxType type) {
  switch (type) {
    case IdxType::kUint8:
      return "uint8";
    case IdxType::kInt8:
      return "int8";
    case IdxType::kInt16:
      return "int16";
    case IdxType::kInt32:
      return "int32";
    case IdxType::kFloat32:
      return "float32";
    case IdxType::kFloat64:
      return "float64";
  }
  return "unknown";
}

IdxData read_idx(std::span<const uint8_t> file, const IdxOptions& options) {
  IdxOptions named = options;
  if (named.name.empty()) named.name = "IDX data";
  return read_source(memory_source(file), named);
}

IdxData read_idx_file(const std::string& path, const IdxOptions& options) {
  IdxOptions named = options;
  if (named.name.empty()) named.name = fmt::format("\"{}\"", path);
  return read_source(file_source(path), named);
}

}  // namespace berth::io
