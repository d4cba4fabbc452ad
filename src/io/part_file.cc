#include "io/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <thread>

#include "berth/errors.h"

namespace berth::io {

PartFile::PartFile(const std::string& path, const std::string& subject,
                   Clock::time_point deadline)
    : path_(path), part_(path + ".part"), subject_(subject) {
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) {
    std::error_code code;
    std::filesystem::create_directories(parent, code);
    if (code) raise("make the folder of", code.value());
  }
  while (!open_and_lock()) {
    if (Clock::now() >= deadline) {
      throw errors::DeadlineExceeded(fmt::format(
          "{}: \"{}\" stayed locked by another download of the same file; wait "
          "for that process, or end it",
          subject_, part_));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

PartFile::~PartFile() {
  if (fd_ >= 0) close(fd_);
}

bool PartFile::open_and_lock() {
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
                    O_NONBLOCK;  // a pipe of this name must not hang
  const int fd = open(part_.c_str(), flags, 0644);
  if (fd < 0) raise("open", errno);
  struct stat mine, named;
  // A file system without locks is used without them.
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  // The holder before us may have renamed or deleted what we opened.
  if (!locked || fstat(fd, &mine) != 0 || lstat(part_.c_str(), &named) != 0 ||
      mine.st_ino != named.st_ino || mine.st_dev != named.st_dev) {
    close(fd);
    return false;
  }
  if (!S_ISREG(mine.st_mode)) {
    close(fd);
    raise("write a file that is not regular:", EINVAL);
  }
  fd_ = fd;
  size_ = mine.st_size;
  return true;
}

void PartFile::append(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      raise("write", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    size_ += count;
  }
}

void PartFile::clear() {
  if (ftruncate(fd_, 0) != 0) raise("empty", errno);
  size_ = 0;
}

void PartFile::commit() {
  if (fsync(fd_) != 0) raise("flush", errno);
  if (rename(part_.c_str(), path_.c_str()) != 0) raise("rename", errno);
}

void PartFile::discard() {
  // Best effort: what stays is found out by the next download's checksum.
  unlink(part_.c_str());
}

void PartFile::raise(const char* what, int code) const {
  const std::string message = fmt::format("{}: cannot {} \"{}\": {}", subject_,
                                          what, part_, strerror(code));
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
    throw errors::ResourceExhausted(message + "; free disk space");
  }
  if (code == EACCES || code == EPERM || code == EROFS) {
    throw errors::PermissionDenied(message +
                                   "; choose a folder that can be written");
  }
  throw errors::Unavailable(message + "; choose another path");
}

}  // namespace berth::io
