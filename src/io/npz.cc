#include "io/npz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>

#include "berth/errors.h"

namespace berth::io {
namespace {

// The few lines of ZIP that NumPy writes. minizip reads files, so it would need
// functions for memory, and limits of its own on sizes: as many lines.
constexpr size_t kMostEntries = 1000;

uint64_t zip_number(std::string_view s, size_t at, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; ++i) {
    v |= uint64_t{static_cast<uint8_t>(s[at + static_cast<size_t>(i)])}
         << 8 * i;
  }
  return v;
}

[[noreturn]] void zip_damaged(const std::string& what) {
  throw errors::DataLoss(
      fmt::format("the .npz file is damaged: {}; fetch it again", what));
}

struct ZipEntry {
  std::string name;
  int method = 0;  // 0: stored, 8: deflated
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, at = 0;
};

// Sizes of 4 GiB and more are in an extra field of the entry (ZIP64).
void read_zip64(std::string_view extra, ZipEntry* e) {
  while (extra.size() >= 4) {
    const uint64_t id = zip_number(extra, 0, 2), n = zip_number(extra, 2, 2);
    extra.remove_prefix(4);
    if (n > extra.size()) return;
    std::string_view field = extra.substr(0, n);
    extra.remove_prefix(n);
    if (id != 1) continue;
    for (uint64_t* v : {&e->size, &e->packed, &e->at}) {
      if (*v != 0xffffffff || field.size() < 8) continue;
      *v = zip_number(field, 0, 8);
      field.remove_prefix(8);
    }
  }
}

// Reads the directory at the end of the archive.
std::vector<ZipEntry> zip_entries(std::string_view zip) {
  const size_t end = zip.rfind("PK\5\6");
  if (!zip.starts_with("PK") || end == zip.npos) {
    throw errors::InvalidArgument(fmt::format(
        "{} bytes are no ZIP archive; expected the contents of a .npz file",
        zip.size()));
  }
  if (zip.size() - end < 22) zip_damaged("its directory is cut off");
  const uint64_t count = zip_number(zip, end + 10, 2);
  size_t at = zip_number(zip, end + 16, 4);
  if (count > kMostEntries) zip_damaged("it has too many entries");
  std::vector<ZipEntry> all;
  for (uint64_t i = 0; i < count; ++i) {
    if (at > zip.size() || zip.size() - at < 46 ||
        zip.substr(at, 4) != "PK\1\2") {
      zip_damaged("its directory is none");
    }
    ZipEntry e;
    e.method = static_cast<int>(zip_number(zip, at + 10, 2));
    e.crc = static_cast<uint32_t>(zip_number(zip, at + 16, 4));
    e.packed = zip_number(zip, at + 20, 4);
    e.size = zip_number(zip, at + 24, 4);
    const size_t name = zip_number(zip, at + 28, 2);
    const size_t extra = zip_number(zip, at + 30, 2);
    const size_t comment = zip_number(zip, at + 32, 2);
    e.at = zip_number(zip, at + 42, 4);
    if (zip.size() - at - 46 < name + extra + comment) {
      zip_damaged("its directory is cut off");
    }
    e.name = zip.substr(at + 46, name);
    read_zip64(zip.substr(at + 46 + name, extra), &e);
    at += 46 + name + extra + comment;
    all.push_back(std::move(e));
  }
  return all;
}

std::string inflated(std::string_view packed, uint64_t size) {
  z_stream s{};
  if (inflateInit2(&s, -15) != Z_OK) throw std::bad_alloc();
  std::string out;
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  s.avail_in = static_cast<uInt>(packed.size());
  int code = Z_OK;
  // Grows with what arrives, not by what the entry claims.
  while (code == Z_OK && out.size() <= size) {
    char window[1 << 14];
    s.next_out = reinterpret_cast<Bytef*>(window);
    s.avail_out = sizeof(window);
    code = inflate(&s, Z_NO_FLUSH);
    const size_t got = sizeof(window) - s.avail_out;
    try {
      out.append(window, got);
    } catch (...) {
      inflateEnd(&s);
      throw;
    }
    if (got == 0 && code == Z_OK && s.avail_in == 0) code = Z_BUF_ERROR;
  }
  inflateEnd(&s);
  if (code != Z_STREAM_END || out.size() != size) {
    zip_damaged("an entry cannot be decompressed");
  }
  return out;
}

std::string entry_bytes(std::string_view zip, const ZipEntry& e,
                        const NpzOptions& o) {
  if (e.size > static_cast<uint64_t>(o.max_bytes)) {
    throw errors::ResourceExhausted(
        fmt::format("\"{}\" has {} bytes; expected at most {}", e.name, e.size,
                    o.max_bytes));
  }
  if (e.at > zip.size() || zip.size() - e.at < 30 ||
      zip.substr(e.at, 4) != "PK\3\4") {
    zip_damaged(fmt::format("\"{}\" is not where its directory says", e.name));
  }
  const uint64_t skip =
      30 + zip_number(zip, e.at + 26, 2) + zip_number(zip, e.at + 28, 2);
  const uint64_t left = zip.size() - e.at;
  if (skip > left || e.packed > left - skip || e.packed > UINT32_MAX) {
    zip_damaged(fmt::format("\"{}\" is cut off", e.name));
  }
  const std::string_view packed = zip.substr(e.at + skip, e.packed);
  std::string bytes;
  if (e.method == 0 && e.packed == e.size) {
    bytes = packed;
  } else if (e.method == 8) {
    bytes = inflated(packed, e.size);
  } else {
    throw errors::InvalidArgument(fmt::format(
        "\"{}\" is compressed by method {}; expected one that NumPy writes",
        e.name, e.method));
  }
  uLong crc = crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size(); at += 1 << 30) {
    const size_t n = std::min<size_t>(bytes.size() - at, 1 << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data() + at),
                static_cast<uInt>(n));
  }
  if (crc != e.crc) {
    zip_damaged(fmt::format("the checksum of \"{}\" is wrong", e.name));
  }
  return bytes;
}

// The text after 'key': in a header such as
// {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
std::string_view npy_field(std::string_view header, const char* key) {
  const std::string quoted = fmt::format("'{}':", key);
  const size_t at = header.find(quoted);
  if (at == header.npos) {
    throw errors::InvalidArgument(
        fmt::format("the array's header has no {}; expected NumPy's", key));
  }
  std::string_view rest = header.substr(at + quoted.size());
  while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  return rest;
}

struct NpyType {
  const char* name;
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {
    {"f4", float32},   {"f8", float64},     {"i4", int32}, {"i8", int64},
    {"u1", uint8},     {"i1", int8},        {"b1", bool_}, {"f2", float16},
    {"c8", complex64}, {"c16", complex128}, {"i2", int16}, {"u2", uint16},
    {"u4", uint32},    {"u8", uint64}};

std::vector<int64_t> npy_shape(std::string_view text) {
  std::vector<int64_t> shape;
  if (!text.starts_with("(")) zip_damaged("an array has no shape");
  text.remove_prefix(1);
  for (;;) {
    while (!text.empty() && (text[0] == ' ' || text[0] == ',')) {
      text.remove_prefix(1);
    }
    if (text.starts_with(")")) return shape;
    int64_t n = 0;
    const auto [p, code] =
        std::from_chars(text.data(), text.data() + text.size(), n);
    if (code != std::errc() || n < 0 || shape.size() >= 8) {
      zip_damaged("an array's shape is none");
    }
    text.remove_prefix(static_cast<size_t>(p - text.data()));
    shape.push_back(n);
  }
}

}  // namespace

NpyArray read_npy(std::string_view bytes) {
  if (bytes.size() < 12 || !bytes.starts_with("\x93NUMPY")) {
    throw errors::InvalidArgument(
        "an array does not begin as NumPy's do; expected a .npy file");
  }
  const bool old = bytes[6] == 1;
  const size_t head = old ? 10 : 12;
  const uint64_t length = zip_number(bytes, 8, old ? 2 : 4);
  if (length > bytes.size() - head) zip_damaged("an array's header is cut off");
  const std::string_view header = bytes.substr(head, length);
  const std::string_view body = bytes.substr(head + length);
  NpyArray array;
  array.shape = npy_shape(npy_field(header, "shape"));
  const std::string_view descr = npy_field(header, "descr");
  if (descr.starts_with("'|O'")) {
    throw errors::InvalidArgument(
        "an array holds Python objects, which are not read; convert the file "
        "once by tools/plain_npz, which is among Berth's sources");
  }
  const bool fortran = npy_field(header, "fortran_order").starts_with("True");
  for (const NpyType& type : kNpyTypes) {
    for (const char* order : {"'<", "'|", "'="}) {
      if (descr.starts_with(fmt::format("{}{}'", order, type.name))) {
        array.dtype = type.dtype;
      }
    }
  }
  if (array.dtype == DType::kInvalid || (fortran && array.shape.size() > 1)) {
    throw errors::InvalidArgument(fmt::format(
        "an array has the header {}; expected little-endian numbers, "
        "row-major",
        header.substr(0, 100)));
  }
  uint64_t wanted = size_of(array.dtype);
  for (const int64_t n : array.shape) {
    if (__builtin_mul_overflow(wanted, static_cast<uint64_t>(n), &wanted)) {
      zip_damaged("an array's shape is too large");
    }
  }
  if (body.size() != wanted) {
    zip_damaged(
        fmt::format("an array has {} bytes; expected {}", body.size(), wanted));
  }
  array.bytes = body;
  return array;
}

std::map<std::string, NpyArray> read_npz(std::string_view bytes,
                                         const NpzOptions& options) {
  std::map<std::string, NpyArray> all;
  for (const ZipEntry& e : zip_entries(bytes)) {
    std::string name = e.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    all[name] = read_npy(entry_bytes(bytes, e, options));
  }
  return all;
}

}  // namespace berth::io
