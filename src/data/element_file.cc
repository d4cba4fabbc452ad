#include "data/element_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/urls.h"
#include "berth/errors.h"
#include "data/row_source.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

constexpr char kElementMagic[8] = {'B', 'E', 'R', 'T', 'H', 'D', 'S', '1'};
constexpr uint64_t kEndOfElements = std::numeric_limits<uint64_t>::max();

uint32_t crc_of(const std::string& bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

[[noreturn]] void file_error(const std::string& where, const char* what,
                             const std::string& path, int error) {
  const std::string text = fmt::format("{}: cannot {} {}: {}", where, what,
                                       path, std::strerror(error));
  switch (error) {
    case ENOENT:
      throw errors::NotFound(text + "; expected a folder that exists");
    case EACCES:
    case EPERM:
    case EROFS:
      throw errors::PermissionDenied(text + "; choose another place");
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      throw errors::ResourceExhausted(text + "; make room, or cache less");
    default:
      throw errors::Unavailable(text);
  }
}

template <class T>
void append(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_tensor(std::string* out, const Tensor& given) {
  Tensor t = given;
  if (t.dtype() != string_) {
    t = copy_to_device(given, host_device());
    synchronize(t.impl()->block->ready);
  }
  append(out, static_cast<uint8_t>(t.dtype()));
  append(out, static_cast<uint8_t>(t.rank()));
  for (int d = 0; d < t.rank(); ++d) append(out, t.shape()[d]);
  if (t.dtype() != string_) {
    const size_t bytes = t.impl()->size_bytes();
    out->append(reinterpret_cast<const char*>(t.impl()->data()), bytes);
    return;
  }
  for (const std::string& s : strings_of(t)) {
    append(out, static_cast<uint64_t>(s.size()));
    *out += s;
  }
}

// Takes a record apart; false where it is too short or means nothing.
class RecordParser {
 public:
  explicit RecordParser(const std::string& bytes) : bytes_(bytes) {}
  bool element(Tensors* out) {
    uint32_t n = 0;
    if (!get(&n) || n > bytes_.size()) return false;
    out->resize(n);
    for (Tensor& t : *out) {
      if (!tensor(&t)) return false;
    }
    return at_ == bytes_.size();
  }

 private:
  template <class T>
  bool get(T* value) {
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  bool tensor(Tensor* out) {
    uint8_t code = 0, rank = 0;
    if (!get(&code) || !get(&rank) || rank > kMaxRank) return false;
    const auto dtype = static_cast<DType>(code);
    if (dtype != string_ && size_of(dtype) == 0) return false;
    Shape shape;
    uint64_t n = 1;
    for (int d = 0; d < rank; ++d) {
      int64_t dim = 0;
      if (!get(&dim) || dim < 0) return false;
      shape.push_back(dim);
      if (__builtin_mul_overflow(n, static_cast<uint64_t>(dim), &n)) {
        return false;
      }
    }
    return dtype == string_ ? strings(out, shape, n)
                            : bytes(out, dtype, shape, n);
  }
  bool bytes(Tensor* out, DType dtype, const Shape& shape, uint64_t n) {
    const size_t left = bytes_.size() - at_;
    if (n > left / size_of(dtype)) return false;
    const size_t size = n * size_of(dtype);
    *out = make_tensor(host_device(), dtype, shape);
    if (size > 0) std::memcpy(out->impl()->data(), bytes_.data() + at_, size);
    at_ += size;
    return true;
  }
  bool strings(Tensor* out, const Shape& shape, uint64_t n) {
    if (n > bytes_.size()) return false;
    std::vector<std::string> all;
    for (uint64_t i = 0; i < n; ++i) {
      uint64_t size = 0;
      if (!get(&size) || size > bytes_.size() - at_) return false;
      all.emplace_back(bytes_, at_, size);
      at_ += size;
    }
    *out = make_strings(all, shape);
    return true;
  }

  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace

ElementWriter::ElementWriter(std::string where, std::string path,
                             std::string description)
    : where_(std::move(where)), path_(std::move(path)) {
  refuse_url(path_, where_);
  static std::atomic<int> number{0};
  part_ = fmt::format("{}.{}.{}.part", path_, getpid(), number++);
  file_.reset(std::fopen(part_.c_str(), "wbe"));
  if (!file_) file_error(where_, "write", part_, errno);
  write(kElementMagic, sizeof kElementMagic);
  write_record(description);
}

ElementWriter::~ElementWriter() {
  file_.reset();
  if (!part_.empty()) unlink(part_.c_str());
}

void ElementWriter::fail(const char* what) const {
  file_error(where_, what, part_, errno);
}

void ElementWriter::write(const void* bytes, size_t size) {
  if (std::fwrite(bytes, 1, size, file_.get()) != size) fail("write");
}

void ElementWriter::write_record(const std::string& bytes) {
  const uint64_t size = bytes.size();
  const uint32_t crc = crc_of(bytes);
  write(&size, sizeof size);
  write(bytes.data(), bytes.size());
  write(&crc, sizeof crc);
}

void ElementWriter::add(const Tensors& element) {
  buffer_.clear();
  append(&buffer_, static_cast<uint32_t>(element.size()));
  for (const Tensor& t : element) append_tensor(&buffer_, t);
  write_record(buffer_);
  ++count_;
}

void ElementWriter::commit() {
  write(&kEndOfElements, sizeof kEndOfElements);
  std::string count;
  append(&count, count_);
  const uint32_t crc = crc_of(count);
  write(count.data(), count.size());
  write(&crc, sizeof crc);
  if (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0) {
    fail("write");
  }
  file_.reset();
  if (std::rename(part_.c_str(), path_.c_str()) != 0) fail("rename");
  part_.clear();
  const auto folder = std::filesystem::path(path_).parent_path();
  const int fd =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  ::close(fd);
}

ElementReader::ElementReader(std::string where, std::string path,
                             FileHandle file)
    : where_(std::move(where)),
      path_(std::move(path)),
      file_(std::move(file)) {}

void ElementReader::damaged(const std::string& what) const {
  throw errors::DataLoss(fmt::format(
      "{}: the file {} is damaged at byte {}: {}; remove it, and it is written "
      "again",
      where_, path_, at_, what));
}

void ElementReader::read(void* bytes, size_t size) {
  if (static_cast<uint64_t>(size_ - at_) < size ||
      std::fread(bytes, 1, size, file_.get()) != size) {
    damaged("it ends in the middle of a record");
  }
  at_ += static_cast<int64_t>(size);
}

bool ElementReader::read_record(std::string* bytes) {
  uint64_t size = 0;
  read(&size, sizeof size);
  const bool end = size == kEndOfElements;
  if (end) size = sizeof(uint64_t);
  if (size > static_cast<uint64_t>(size_ - at_)) {
    damaged(fmt::format("a record of {} bytes", size));
  }
  bytes->resize(size);
  read(bytes->data(), size);
  uint32_t crc = 0;
  read(&crc, sizeof crc);
  if (crc != crc_of(*bytes)) damaged("a record's checksum is wrong");
  return !end;
}

std::unique_ptr<ElementReader> ElementReader::open(
    const std::string& where, const std::string& path,
    const std::string& description) {
  FileHandle file(std::fopen(path.c_str(), "rbe"));
  if (!file) {
    if (errno == ENOENT) return nullptr;
    file_error(where, "read", path, errno);
  }
  std::unique_ptr<ElementReader> reader(
      new ElementReader(where, path, std::move(file)));
  struct stat info;
  if (fstat(fileno(reader->file_.get()), &info) != 0 ||
      !S_ISREG(info.st_mode)) {
    file_error(where, "read", path, EISDIR);
  }
  reader->size_ = info.st_size;
  char magic[sizeof kElementMagic];
  reader->read(magic, sizeof magic);
  if (std::memcmp(magic, kElementMagic, sizeof magic) != 0) {
    throw errors::InvalidArgument(fmt::format(
        "{}: the file {} holds no elements; expected one that cache or "
        "snapshot wrote: choose another name",
        where, path));
  }
  std::string found;
  if (!reader->read_record(&found)) reader->damaged("it has no description");
  if (found != description) {
    throw errors::InvalidArgument(fmt::format(
        "{}: the file {} holds elements ({}); expected those of this dataset "
        "({}): remove it, or choose another name",
        where, path, found, description));
  }
  return reader;
}

bool ElementReader::next(Tensors* element) {
  if (!read_record(&buffer_)) return false;
  if (!RecordParser(buffer_).element(element)) {
    damaged("a record that is no element");
  }
  return true;
}

}  // namespace berth::data
