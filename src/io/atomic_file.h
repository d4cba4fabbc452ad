// AtomicFile: a file that appears whole, or not at all.
//
// It grows as `<path>.part` in the same folder; commit() brings its bytes to
// the disk and gives it its name. Until then a file that had the name stays. A
// part without commit() is deleted; one that a killed process left behind is
// overwritten by the next writer of the same path. WriteLock keeps a second
// writer away. One thread per object.

#ifndef BERTH_IO_ATOMIC_FILE_H_
#define BERTH_IO_ATOMIC_FILE_H_

#include <cstdint>
#include <span>
#include <string>

namespace berth::io {

class AtomicFile {
 public:
  // Creates the part, in a folder that exists. Messages begin with `subject`
  // ("Checkpoint.save (train.cc:12)"). Throws NotFound (no such folder),
  // PermissionDenied, ResourceExhausted, Unavailable.
  AtomicFile(const std::string& path, std::string subject);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws ResourceExhausted when the disk is full or the file larger
  // than may be.
  void append(const void* bytes, size_t size);
  // Writes over bytes that are there.
  void overwrite(uint64_t at, const void* bytes, size_t size);
  // Bytes so far.
  uint64_t size() const { return size_; }

  // Flushes the file, names it, and flushes the folder.
  void commit();

 private:
  void write_all(const void* bytes, size_t size, int64_t at);
  [[noreturn]] void raise(const char* what, int code) const;

  const std::string path_, part_, subject_;
  int fd_ = -1;
  uint64_t size_ = 0, flushed_ = 0;
};

// Holds `<path>.lock` while it lives. The lock ends with the process.
class WriteLock {
 public:
  // Throws Unavailable when another object, of this or another process, has
  // the lock, and what AtomicFile throws.
  WriteLock(const std::string& path, const std::string& subject);
  ~WriteLock();
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  std::string name_;
  int fd_ = -1;
};

// Makes the folder and those above it. Throws PermissionDenied, Unavailable.
void make_folder(const std::string& folder, const std::string& subject);

// Deletes a file, if there is one; what cannot be deleted stays.
void remove_file(const std::string& path);

bool is_regular_file(const std::string& path);

// Returns what stands before the last slash, "." when there is none.
std::string folder_of(const std::string& path);

}  // namespace berth::io

#endif  // BERTH_IO_ATOMIC_FILE_H_
