// PartFile: the locked `<path>.part` that a download grows.
//
// The lock is held from construction to destruction, so that two processes
// never write one part. One thread per object.

#ifndef BERTH_IO_PART_FILE_H_
#define BERTH_IO_PART_FILE_H_

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace berth::io {

class PartFile {
 public:
  using Clock = std::chrono::steady_clock;

  // Opens or creates `<path>.part` and its parent folders, and waits until
  // `deadline` for another process that holds it. Messages begin with
  // `subject`. Throws PermissionDenied,
  // ResourceExhausted, Unavailable, or DeadlineExceeded for the wait.
  PartFile(const std::string& path, const std::string& subject,
           Clock::time_point deadline);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return part_; }
  int64_t size() const { return size_; }

  // Appends. Throws ResourceExhausted when the disk is full.
  void append(std::span<const uint8_t> bytes);

  // Empties the part.
  void clear();

  // Flushes the bytes to disk and renames the part to `path`.
  void commit();

  // Deletes the part; for bytes that are known to be wrong.
  void discard();

 private:
  bool open_and_lock();
  [[noreturn]] void raise(const char* what, int code) const;

  std::string path_, part_, subject_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace berth::io

#endif  // BERTH_IO_PART_FILE_H_
