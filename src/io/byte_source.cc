#include "io/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/urls.h"
#include "berth/errors.h"

namespace berth::io {
namespace {

constexpr size_t kWindow = size_t{64} << 10;

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  std::span<const uint8_t> peek() override { return bytes_.subspan(at_); }
  void skip(size_t count) override { at_ += count; }
  uint64_t offset() const override { return at_; }
  std::string position() const override { return fmt::format("byte {}", at_); }
  int64_t bytes_left() const override {
    return static_cast<int64_t>(bytes_.size() - at_);
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

// Maps errno of open() to the error that names the remedy.
[[noreturn]] void raise_open(const std::string& path, int code) {
  if (code == ENOENT || code == ENOTDIR) {
    throw errors::NotFound(
        fmt::format("cannot open \"{}\": no such file; check the path", path));
  }
  if (code == EACCES || code == EPERM) {
    throw errors::PermissionDenied(fmt::format(
        "cannot open \"{}\": permission denied; make it readable for this user",
        path));
  }
  throw errors::Unavailable(
      fmt::format("cannot open \"{}\": {}", path, strerror(code)));
}

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::string& path) : path_(path) {
    // O_NONBLOCK: opening a pipe without a writer must not hang.
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) raise_open(path, errno);
    struct stat info;
    if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
      close(fd_);
      throw errors::InvalidArgument(fmt::format(
          "\"{}\" is not a regular file; expected a plain or gzip file", path));
    }
    size_ = info.st_size;
  }
  ~FileSource() override { close(fd_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  std::span<const uint8_t> peek() override {
    if (begin_ == end_) fill();
    return std::span<const uint8_t>(window_).subspan(begin_, end_ - begin_);
  }
  void skip(size_t count) override {
    begin_ += count;
    offset_ += count;
  }
  uint64_t offset() const override { return offset_; }
  std::string position() const override {
    return fmt::format("byte {}", offset_);
  }
  int64_t bytes_left() const override {
    return std::max<int64_t>(0, size_ - static_cast<int64_t>(offset_));
  }

 private:
  void fill() {
    begin_ = end_ = 0;
    while (end_ < kWindow) {
      const ssize_t got = ::read(fd_, window_.data() + end_, kWindow - end_);
      if (got == 0) return;
      if (got < 0) {
        if (errno == EINTR) continue;
        throw errors::Unavailable(
            fmt::format("cannot read \"{}\" at byte {}: {}", path_,
                        offset_ + end_, strerror(errno)));
      }
      end_ += static_cast<size_t>(got);
    }
  }

  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;
  uint64_t offset_ = 0;
  size_t begin_ = 0, end_ = 0;
  std::array<uint8_t, kWindow> window_;
};

}  // namespace

void raise_write(const std::string& where, const char* what,
                 const std::string& path) {
  const int code = errno;
  const std::string message = fmt::format("{}: cannot {} \"{}\": {}", where,
                                          what, path, strerror(code));
  if (code == ENOENT || code == ENOTDIR) {
    throw errors::NotFound(message + "; make its folder first");
  }
  if (code == EACCES || code == EPERM || code == EROFS) {
    throw errors::PermissionDenied(message);
  }
  if (code == ENOSPC || code == EDQUOT) {
    throw errors::ResourceExhausted(message + "; free some of the disk");
  }
  throw errors::Unavailable(message);
}

size_t ByteSource::read(std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    const std::span<const uint8_t> next = peek();
    if (next.empty()) break;
    const size_t count = std::min(next.size(), out.size() - done);
    std::copy_n(next.begin(), count, out.begin() + done);
    skip(count);
    done += count;
  }
  return done;
}

std::unique_ptr<ByteSource> memory_source(std::span<const uint8_t> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

std::unique_ptr<ByteSource> file_source(const std::string& path) {
  return std::make_unique<FileSource>(local_file(path));
}

}  // namespace berth::io
