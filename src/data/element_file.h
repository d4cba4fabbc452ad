// Elements in a file: what cache(filename) and snapshot(path) write.
//
// "BERTHDS1", the description of the elements, then one record per element,
// each with its length and CRC-32, then the number of elements. A file without
// its end is never seen: it is written beside its place, flushed to the disk,
// and renamed. Numbers are little-endian. One thread per object.

#ifndef BERTH_DATA_ELEMENT_FILE_H_
#define BERTH_DATA_ELEMENT_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "berth/tensor.h"

namespace berth::data {

struct FileCloser {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using FileHandle = std::unique_ptr<std::FILE, FileCloser>;

class ElementWriter {
 public:
  // Throws errors::NotFound, PermissionDenied, ResourceExhausted or
  // Unavailable with `where` and the path; so do the others.
  ElementWriter(std::string where, std::string path, std::string description);
  // Removes what was not committed.
  ~ElementWriter();
  ElementWriter(const ElementWriter&) = delete;
  ElementWriter& operator=(const ElementWriter&) = delete;

  void add(const Tensors& element);
  // Puts the file in its place.
  void commit();

 private:
  void write(const void* bytes, size_t size);
  void write_record(const std::string& bytes);
  [[noreturn]] void fail(const char* what) const;

  std::string where_, path_, part_;
  FileHandle file_;
  uint64_t count_ = 0;
  std::string buffer_;
};

class ElementReader {
 public:
  // Null when there is no such file. Throws errors::DataLoss for a damaged
  // one, errors::InvalidArgument for one of other elements.
  static std::unique_ptr<ElementReader> open(const std::string& where,
                                             const std::string& path,
                                             const std::string& description);
  // False at the end. Throws errors::DataLoss.
  bool next(Tensors* element);

 private:
  ElementReader(std::string where, std::string path, FileHandle file);
  void read(void* bytes, size_t size);
  // The next record; nullopt: the end.
  bool read_record(std::string* bytes);
  [[noreturn]] void damaged(const std::string& what) const;

  std::string where_, path_;
  FileHandle file_;
  int64_t size_ = 0, at_ = 0;
  std::string buffer_;
};

}  // namespace berth::data

#endif  // BERTH_DATA_ELEMENT_FILE_H_
