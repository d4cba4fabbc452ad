#include "io/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <unordered_map>

#include "base/urls.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/parallel_for_files.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::io {

namespace {

// Fits the second cache: checksum and copy read the same bytes.
constexpr size_t kPieceBytes = size_t{512} << 10;
// Tensors of so many bytes are read in parts, side by side.
constexpr size_t kLargeTensor = size_t{32} << 20;
constexpr size_t kPartBytes = size_t{8} << 20;
constexpr const char* kCrc = "berth.crc32c";
constexpr const char* kDtype = "berth.dtype:";

const char* stored_type(DType dtype) {
  switch (dtype) {
    case float32:
      return "F32";
    case float64:
      return "F64";
    case int32:
      return "I32";
    case int64:
      return "I64";
    case uint8:
      return "U8";
    case bool_:
      return "BOOL";
    case bfloat16:
      return "BF16";
    case float16:
      return "F16";
    case int8:
      return "I8";
    case int16:
      return "I16";
    case uint16:
      return "U16";
    case uint32:
      return "U32";
    case uint64:
      return "U64";
    case complex64:
      return "C64";
    case complex128:
      return "F64";  // [..., 2]
    case string_:
      return "U8";  // packed
    default:
      return nullptr;
  }
}

DType dtype_of_stored(const std::string& type) {
  for (const DType d :
       {float32, float64, int32, int64, uint8, bool_, bfloat16, float16, int8,
        complex64, int16, uint16, uint32, uint64}) {
    if (type == stored_type(d)) return d;
  }
  return DType::kInvalid;
}

std::vector<int64_t> dims_of(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

Shape shape_of(const std::vector<int64_t>& dims) {
  return Shape(std::span<const int64_t>(dims));
}

// Lengths, then the bytes one after the other.
std::string pack(const Tensor& t) {
  std::string lengths, bytes;
  for (const std::string& s : strings_of(t)) {
    const uint64_t n = s.size();
    lengths.append(reinterpret_cast<const char*>(&n), sizeof n);
    bytes += s;
  }
  return lengths + bytes;
}

Tensor unpack(const std::string& packed, const Shape& shape,
              const std::string& subject, const std::string& name) {
  const auto n = static_cast<size_t>(shape.num_elements());
  std::vector<std::string> values;
  size_t at = n * sizeof(uint64_t);
  bool fits = n <= packed.size() / sizeof(uint64_t);
  for (size_t i = 0; fits && i < n; ++i) {
    uint64_t length;
    memcpy(&length, packed.data() + i * sizeof length, sizeof length);
    fits = length <= packed.size() - at;
    if (!fits) break;
    values.push_back(packed.substr(at, length));
    at += length;
  }
  if (fits && at == packed.size()) return make_strings(values, shape);
  throw errors::DataLoss(fmt::format(
      "{}: the texts of \"{}\" are damaged; copy or save the file again",
      subject, name));
}

// Calls fn(bytes, size) for one piece after the other. Between two pieces a
// writer of the variable that a snapshot belongs to may move its bytes.
template <class Fn>
void visit_pieces(const Tensor& t, const Fn& fn) {
  const TensorImpl& impl = *t.impl();
  const size_t size = impl.size_bytes();
  synchronize(impl.block->ready);
  if (size == 0) return;
  Device& device = *impl.block->device;
  if (!device.memory().host_addressable) {
    const std::unique_ptr<std::byte[]> host(new std::byte[size]);
    t.copy_to(host.get());
    for (size_t at = 0; at < size; at += kPieceBytes) {
      fn(host.get() + at, std::min(kPieceBytes, size - at));
    }
    return;
  }
  for (size_t at = 0; at < size; at += kPieceBytes) {
    ReadGuard guard;
    guard.hold(impl.block);
    synchronize(impl.block->ready);
    fn(impl.data() + at, std::min(kPieceBytes, size - at));
  }
}

// One tensor as the file has it.
struct Stored {
  TensorToWrite from;
  std::string packed;  // of text
  SafetensorsEntry entry;
  uint32_t crc = 0;
};

Stored stored(TensorToWrite t, std::map<std::string, std::string>* metadata,
              const std::string& subject) {
  const DType dtype = t.value.dtype();
  Stored s;
  s.entry.name = t.name;
  s.entry.shape = dims_of(t.value.shape());
  if (stored_type(dtype) == nullptr) {
    throw errors::InvalidArgument(fmt::format(
        "{}: \"{}\" is a tensor of {}; expected numbers, bool or text", subject,
        t.name, name_of(dtype)));
  }
  s.entry.type = stored_type(dtype);
  s.entry.end = stored_bytes(t.value);
  if (dtype == complex128) {
    s.entry.shape.push_back(2);
    (*metadata)[kDtype + t.name] = "complex128";
  }
  if (dtype == string_) {
    std::string note = "string";
    for (const int64_t d : s.entry.shape) note += " " + std::to_string(d);
    (*metadata)[kDtype + t.name] = note;
    s.packed = pack(t.value);
    s.entry.end = s.packed.size();
    s.entry.shape = {static_cast<int64_t>(s.packed.size())};
  }
  s.from = std::move(t);
  return s;
}

// Wide elements first, so that each begins at a multiple of its size.
void lay_out(std::vector<Stored>* list) {
  std::stable_sort(
      list->begin(), list->end(), [](const Stored& a, const Stored& b) {
        return std::pair(-safetensors_type_bytes(a.entry.type), a.entry.name) <
               std::pair(-safetensors_type_bytes(b.entry.type), b.entry.name);
      });
  uint64_t at = 0;
  for (Stored& s : *list) {
    const uint64_t bytes = s.entry.end;
    s.entry.begin = at;
    s.entry.end = at += bytes;
  }
}

}  // namespace

size_t stored_bytes(const Tensor& t) {
  return t.dtype() == string_ ? pack(t).size() : t.impl()->size_bytes();
}

void copy_pieces(const Tensor& t, std::byte* target) {
  visit_pieces(t, [&](const std::byte* bytes, size_t size) {
    memcpy(target, bytes, size);
    target += size;
  });
}

uint64_t write_safetensors(const std::string& path,
                           std::vector<TensorToWrite> tensors,
                           std::map<std::string, std::string> metadata,
                           const std::string& subject) {
  std::vector<Stored> list;
  for (TensorToWrite& t : tensors) {
    list.push_back(stored(std::move(t), &metadata, subject));
  }
  lay_out(&list);
  SafetensorsHeader header;
  header.metadata = std::move(metadata);
  std::string& crcs = header.metadata[kCrc];
  crcs.assign(8 * list.size(), '0');
  for (const Stored& s : list) header.entries.push_back(s.entry);
  const std::string first = print_safetensors_header(header, subject);
  AtomicFile file(path, subject);
  file.append(first.data(), first.size());
  crcs.clear();
  for (Stored& s : list) {
    const auto write = [&](const std::byte* bytes, size_t size) {
      s.crc = checksum(bytes, size, s.crc);
      file.append(bytes, size);
    };
    const size_t size = s.entry.end - s.entry.begin;
    if (s.from.value.dtype() == string_) {
      write(reinterpret_cast<const std::byte*>(s.packed.data()), size);
    } else if (s.from.copied != nullptr) {
      for (size_t at = 0; at < size; at += kPieceBytes) {
        write(s.from.copied + at, std::min(kPieceBytes, size - at));
      }
    } else {
      visit_pieces(s.from.value, write);
    }
    crcs += fmt::format("{:08x}", s.crc);
    s.from = {};
  }
  const std::string known = print_safetensors_header(header, subject);
  file.overwrite(0, known.data(), known.size());
  const uint64_t size = file.size();
  file.commit();
  return size;
}

struct SafetensorsFile::State {
  std::string path, subject;
  int fd = -1;
  uint64_t file_bytes = 0, data_at = 0;
  SafetensorsHeader header;
  std::vector<Info> infos;
  std::unordered_map<std::string, int> places;
  std::vector<uint32_t> crcs;  // empty: not known

  ~State() {
    if (fd >= 0) close(fd);
  }
  void open_file();
  void read_at(uint64_t at, std::byte* target, size_t size) const;
  // Reads bytes [begin, end) of a tensor to the same offset of `target`,
  // and adds them to the checksum. False: one is not a bool.
  bool read_part(const SafetensorsEntry& e, size_t begin, size_t end,
                 std::byte* target, uint32_t* crc) const;
  void read_header();
  void note_dtype(size_t i);
  void note_crcs();
};

void SafetensorsFile::State::open_file() {
  refuse_url(path, subject);
  fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int code = errno;
  if (fd < 0 && (code == EACCES || code == EPERM)) {
    throw errors::PermissionDenied(
        fmt::format("{}: cannot read \"{}\": {}; give the file's owner, or "
                    "another file",
                    subject, path, strerror(code)));
  }
  if (fd < 0) {
    throw errors::NotFound(
        fmt::format("{}: cannot read \"{}\": {}; expected "
                    "the path of a safetensors file",
                    subject, path, strerror(code)));
  }
  struct stat found;
  if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
    throw errors::InvalidArgument(fmt::format(
        "{}: \"{}\" is no regular file; expected a safetensors file", subject,
        path));
  }
  file_bytes = static_cast<uint64_t>(found.st_size);
}

void SafetensorsFile::State::read_at(uint64_t at, std::byte* target,
                                     size_t size) const {
  while (size > 0) {
    const ssize_t n = pread(fd, target, size, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw errors::DataLoss(fmt::format(
          "{}: \"{}\" ends at byte {}, {} bytes early{}; copy or save it again",
          subject, path, at, size,
          n < 0 ? fmt::format(" ({})", strerror(errno)) : std::string()));
    }
    at += static_cast<uint64_t>(n);
    target += n;
    size -= static_cast<size_t>(n);
  }
}

void SafetensorsFile::State::read_header() {
  uint8_t first[8];
  uint64_t length = 0;
  if (file_bytes >= 8) {
    read_at(0, reinterpret_cast<std::byte*>(first), 8);
    for (int i = 7; i >= 0; --i) length = length << 8 | first[i];
  }
  if (file_bytes < 8 || length > kMostHeaderBytes || length > file_bytes - 8) {
    throw errors::DataLoss(fmt::format(
        "{}: \"{}\" is no safetensors file, or is truncated: it has {} bytes, "
        "and its first 8 promise a header of {}; copy or save it again",
        subject, path, file_bytes, length));
  }
  std::string json(length, '\0');
  read_at(8, reinterpret_cast<std::byte*>(json.data()), length);
  data_at = 8 + length;
  header = parse_safetensors_header(json, file_bytes - data_at,
                                    fmt::format("{}: \"{}\"", subject, path));
  for (size_t i = 0; i < header.entries.size(); ++i) {
    note_dtype(i);
    places[header.entries[i].name] = static_cast<int>(i);
  }
  note_crcs();
}

void SafetensorsFile::State::note_dtype(size_t i) {
  const SafetensorsEntry& e = header.entries[i];
  Info info{e.name, dtype_of_stored(e.type), e.type, {}};
  std::vector<int64_t> dims = e.shape;
  const auto note = header.metadata.find(kDtype + e.name);
  if (note != header.metadata.end()) {
    if (note->second == "complex128" && e.type == "F64" && !dims.empty() &&
        dims.back() == 2) {
      info.dtype = complex128;
      dims.pop_back();
    } else if (note->second.starts_with("string") && e.type == "U8") {
      info.dtype = string_;
      dims.clear();
      const char *p = note->second.data() + 6,
                 *end = note->second.data() + note->second.size();
      uint64_t n = 1;
      while (p != end && dims.size() <= size_t{kMaxRank}) {
        int64_t d = -1;
        const auto [to, code] = std::from_chars(p + 1, end, d);
        // Each text has at least its length.
        if (*p != ' ' || code != std::errc() || d < 0 ||
            __builtin_mul_overflow(n, static_cast<uint64_t>(d), &n) ||
            n > e.end - e.begin) {
          info.dtype = DType::kInvalid;
          break;
        }
        dims.push_back(d);
        p = to;
      }
    }
  }
  if (dims.size() > size_t{kMaxRank}) {
    info.dtype = DType::kInvalid;
    dims.clear();
  }
  const bool known = info.dtype != DType::kInvalid;
  // A shape whose other dimensions overflow beside a zero is of no use.
  int64_t n = 1;
  bool overflows = false;
  for (const int64_t d : dims) {
    overflows = overflows || (d != 0 && __builtin_mul_overflow(n, d, &n));
  }
  if (!known || overflows || n > kMostElements) {
    info.dtype = DType::kInvalid;
  } else {
    info.shape = shape_of(dims);
  }
  infos.push_back(std::move(info));
}

void SafetensorsFile::State::note_crcs() {
  const auto it = header.metadata.find(kCrc);
  if (it == header.metadata.end()) return;
  const std::string& text = it->second;
  const size_t n = header.entries.size();
  for (size_t i = 0; text.size() == 8 * n && i < n; ++i) {
    uint32_t crc = 0;
    const char* p = text.data() + 8 * i;
    if (std::from_chars(p, p + 8, crc, 16).ptr != p + 8) break;
    crcs.push_back(crc);
  }
  if (crcs.size() == n) return;
  throw errors::DataLoss(fmt::format(
      "{}: the checksums in \"{}\" are damaged; copy or save it again", subject,
      path));
}

SafetensorsFile::SafetensorsFile(const std::string& path, std::string subject)
    : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->subject = std::move(subject);
  state_->open_file();
  state_->read_header();
}
SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;

const std::string& SafetensorsFile::path() const { return state_->path; }
uint64_t SafetensorsFile::file_bytes() const { return state_->file_bytes; }
const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return state_->header.metadata;
}
const std::vector<SafetensorsFile::Info>& SafetensorsFile::tensors() const {
  return state_->infos;
}
int SafetensorsFile::find(const std::string& name) const {
  const auto it = state_->places.find(name);
  return it == state_->places.end() ? -1 : it->second;
}

bool SafetensorsFile::State::read_part(const SafetensorsEntry& e, size_t begin,
                                       size_t end, std::byte* target,
                                       uint32_t* crc) const {
  const bool bools = e.type == "BOOL";
  bool valid = true;
  for (size_t at = begin; at < end; at += kPieceBytes) {
    const size_t n = std::min(kPieceBytes, end - at);
    read_at(data_at + e.begin + at, target + at, n);
    if (!crcs.empty()) *crc = checksum(target + at, n, *crc);
    for (size_t k = at; bools && k < at + n; ++k) {
      valid = valid && target[k] <= std::byte{1};
      target[k] &= std::byte{1};
    }
  }
  return valid;
}

void SafetensorsFile::read(int i, std::byte* target) const {
  const State& s = *state_;
  const SafetensorsEntry& e = s.header.entries[static_cast<size_t>(i)];
  const size_t size = e.end - e.begin;
  const size_t parts = size < kLargeTensor ? 1 : size / kPartBytes + 1;
  const auto end_of = [&](size_t p) {
    return p + 1 == parts ? size : (p + 1) * kPartBytes;
  };
  std::vector<uint32_t> found(parts, 0);
  std::atomic<bool> valid{true};
  parallel_for(parts, size, [&](size_t p) {
    if (!s.read_part(e, p * kPartBytes, end_of(p), target, &found[p])) {
      valid = false;
    }
  });
  uint32_t crc = found[0];
  for (size_t p = 1; p < parts; ++p) {
    crc = joined_checksum(crc, found[p], end_of(p) - p * kPartBytes);
  }
  if (!s.crcs.empty() && crc != s.crcs[static_cast<size_t>(i)]) valid = false;
  if (valid) return;
  throw errors::DataLoss(fmt::format(
      "{}: the bytes of \"{}\" in \"{}\" are not those that were written{}; "
      "copy or save the file again, or take an earlier one",
      s.subject, e.name, s.path,
      s.crcs.empty() ? ": a bool is neither 0 nor 1"
                     : ": their checksum differs"));
}

Tensor SafetensorsFile::tensor(int i) const {
  const State& s = *state_;
  const Info& info = s.infos[static_cast<size_t>(i)];
  const SafetensorsEntry& e = s.header.entries[static_cast<size_t>(i)];
  if (info.dtype == DType::kInvalid) {
    throw errors::Unimplemented(fmt::format(
        "{}: \"{}\" in \"{}\" is of {} and rank {}; expected a dtype that "
        "Berth has, of rank {} or less",
        s.subject, e.name, s.path, e.type, e.shape.size(), kMaxRank));
  }
  if (info.dtype == string_) {
    std::string packed(e.end - e.begin, '\0');
    read(i, reinterpret_cast<std::byte*>(packed.data()));
    return unpack(packed, info.shape, s.subject, e.name);
  }
  const Tensor t =
      make_tensor(DeviceManager::get().host(), info.dtype, info.shape);
  read(i, t.impl()->data());
  return t;
}

}  // namespace berth::io
