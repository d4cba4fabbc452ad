// FileCursor: goes through the files of a dataset, one open at a time.
//
// Shared by the sources that read records and rows. Not thread-safe.

#ifndef BERTH_IO_FILE_CURSOR_H_
#define BERTH_IO_FILE_CURSOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/data_files.h"
#include "data/node.h"
#include "io/window_reader.h"

namespace berth::io {

// A node whose elements lie in files.
class FileNode : public data::Node {
 public:
  // Throws errors::InvalidArgument for a compression that is none.
  FileNode(const char* what, Site site, data::FileNames files,
           const std::string& compression, int64_t max_record_bytes);

  const data::FileNames& files() const { return files_; }
  Compression compression() const { return compression_; }
  size_t most() const { return most_; }
  std::vector<const data::Node*> inputs() const override {
    if (!files_.dataset()) return {};
    return {&files_.dataset()->node()};
  }
  std::optional<int64_t> num_files() const override {
    if (files_.dataset()) return files_.dataset()->cardinality();
    return static_cast<int64_t>(files_.names().size());
  }
  const data::Node* file_names() const override {
    return files_.dataset() ? &files_.dataset()->node() : nullptr;
  }
  int64_t cardinality() const override {
    return !files_.dataset() && files_.names().empty() ? 0 : data::kUnknown;
  }

 private:
  data::FileNames files_;
  Compression compression_;
  size_t most_;
};

class FileCursor {
 public:
  // `slack`: bytes beyond a record that the reader looks at.
  FileCursor(const FileNode* node, const data::PassInfo& pass,
             size_t slack = 0);

  // Opens the next file; false after the last, and after a stop.
  bool open_next();
  // Where it stands (data/pass_state.h).
  void save(data::PassWriter& w) const;
  void restore(data::PassReader& r);
  // Closes the file, which was read to its end or is damaged.
  void close() { reader_.reset(); }
  // Null between files.
  WindowReader* reader() { return reader_.get(); }
  bool stopped() const { return stop_.stop_requested(); }

 private:
  std::optional<std::string> next_name();
  void open(const std::string& name);

  const FileNode* node_;
  size_t slack_;
  std::stop_token stop_;
  std::unique_ptr<data::ElementStream> names_;  // of a dataset of names
  // The next of the known names, and the distance from one of this task's to
  // the next (PassInfo::shard).
  size_t index_ = 0, stride_ = 1;
  std::string name_;  // of the open file
  std::unique_ptr<WindowReader> reader_;
};

// What `make` makes of the files, or, with several at once, of each file, a
// record of each in turn. Throws errors::InvalidArgument, naming `what`, for a
// number that cannot be.
data::Dataset read_in_parallel(
    const char* what, data::FileNames files, int64_t num_parallel_reads,
    Site site, const std::function<data::Dataset(data::FileNames)>& make);

// Rethrows an error of reading as one of `node`, unless it is that already.
[[noreturn]] void raise_of(const FileNode& node, const errors::Error& e);

// Texts on their way into a tensor.
class TextColumn {
 public:
  void clear() {
    starts_.clear();
    text_.clear();
  }
  void add(std::string_view text) {
    starts_.push_back(text_.size());
    text_.append(text);
  }
  // Forgets all but the first `count`.
  void truncate(size_t count) {
    if (count >= starts_.size()) return;
    text_.resize(starts_[count]);
    starts_.resize(count);
  }
  void add_all(const TextColumn& other) {
    for (size_t i = 0; i < other.count(); ++i) add(other.at(i));
  }
  std::string_view at(size_t i) const {
    const size_t end = i + 1 < starts_.size() ? starts_[i + 1] : text_.size();
    return {text_.data() + starts_[i], end - starts_[i]};
  }
  size_t count() const { return starts_.size(); }
  Tensor tensor(const Shape& shape) const;

 private:
  std::vector<uint64_t> starts_;
  std::string text_;
};

}  // namespace berth::io

#endif  // BERTH_IO_FILE_CURSOR_H_
