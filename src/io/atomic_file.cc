#include "io/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/urls.h"
#include "berth/errors.h"

namespace berth::io {

namespace {

// The disk begins to write while more bytes come.
constexpr uint64_t kFlushBytes = uint64_t{16} << 20;
constexpr size_t kMostPerCall = size_t{1} << 30;

[[noreturn]] void raise_file_error(const std::string& subject, const char* what,
                                   const std::string& path, int code) {
  const std::string message = fmt::format("{}: cannot {} \"{}\": {}", subject,
                                          what, path, strerror(code));
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
    throw errors::ResourceExhausted(
        message +
        "; free disk space, or choose another folder; what was saved "
        "before is still there");
  }
  if (code == EACCES || code == EPERM || code == EROFS) {
    throw errors::PermissionDenied(message +
                                   "; choose a folder that can be written");
  }
  if (code == ENOENT || code == ENOTDIR) {
    throw errors::NotFound(message + "; make the folder first");
  }
  throw errors::Unavailable(message + "; choose another path");
}

// A file that would grow over the limit of the process (RLIMIT_FSIZE) is an
// error of write(), not the end of the process.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoSizeSignal() {
    const int code = errno;
    if (!was_pending_) {
      const timespec now{};
      while (sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = code;
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
  bool was_pending_ = false;
};

}  // namespace

AtomicFile::AtomicFile(const std::string& path, std::string subject)
    : path_(path), part_(path + ".part"), subject_(std::move(subject)) {
  refuse_url(path_, subject_);
  const int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW |
                    O_NONBLOCK;  // a pipe of this name must not hang
  fd_ = open(part_.c_str(), flags, 0644);
  if (fd_ < 0) raise("create", errno);
  struct stat made;
  if (fstat(fd_, &made) != 0 || !S_ISREG(made.st_mode)) {
    close(fd_);
    raise("write a file that is not regular:", EINVAL);
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(part_.c_str());
}

void AtomicFile::write_all(const void* bytes, size_t size, int64_t at) {
  const NoSizeSignal no_signal;
  const auto* p = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t n = pwrite(fd_, p, std::min(size, kMostPerCall), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) raise("write", n < 0 ? errno : ENOSPC);
    p += n;
    at += n;
    size -= static_cast<size_t>(n);
  }
}

void AtomicFile::append(const void* bytes, size_t size) {
  write_all(bytes, size, static_cast<int64_t>(size_));
  size_ += size;
  if (size_ - flushed_ < kFlushBytes) return;
  // Only a hint.
  sync_file_range(fd_, static_cast<off_t>(flushed_),
                  static_cast<off_t>(size_ - flushed_), SYNC_FILE_RANGE_WRITE);
  flushed_ = size_;
}

void AtomicFile::overwrite(uint64_t at, const void* bytes, size_t size) {
  write_all(bytes, size, static_cast<int64_t>(at));
}

void AtomicFile::commit() {
  if (fsync(fd_) != 0) raise("flush", errno);
  if (close(std::exchange(fd_, -1)) != 0) raise("close", errno);
  if (rename(part_.c_str(), path_.c_str()) != 0) {
    const int code = errno;
    unlink(part_.c_str());
    raise("rename", code);
  }
  const std::string folder = folder_of(path_);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) raise("open the folder of", errno);
  const int failed = fsync(fd) != 0 ? errno : 0;
  close(fd);
  // Some file systems cannot flush folders.
  if (failed != 0 && failed != EINVAL) raise("flush the folder of", failed);
}

void AtomicFile::raise(const char* what, int code) const {
  raise_file_error(subject_, what, path_, code);
}

WriteLock::WriteLock(const std::string& path, const std::string& subject)
    : name_(path + ".lock") {
  refuse_url(path, subject);
  for (int tries = 0; tries < 3; ++tries) {
    fd_ = open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ < 0) raise_file_error(subject, "create", name_, errno);
    // A file system without locks is used without them.
    const bool locked =
        flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    struct stat mine, named;
    // The holder before may have deleted what was opened here.
    if (locked && fstat(fd_, &mine) == 0 && lstat(name_.c_str(), &named) == 0 &&
        mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
      return;
    }
    close(std::exchange(fd_, -1));
    if (!locked) break;
  }
  throw errors::Unavailable(fmt::format(
      "{}: \"{}\" is being written by another writer, of this or another "
      "process, which holds \"{}\"; wait for it, or choose another path",
      subject, path, name_));
}

WriteLock::~WriteLock() {
  if (fd_ < 0) return;
  unlink(name_.c_str());
  close(fd_);
}

void make_folder(const std::string& folder, const std::string& subject) {
  refuse_url(folder, subject);
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) raise_file_error(subject, "make the folder", folder, code.value());
}

void remove_file(const std::string& path) { unlink(path.c_str()); }

bool is_regular_file(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

std::string folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

}  // namespace berth::io
