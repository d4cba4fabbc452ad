// TFRecordDataset, TextLineDataset, FixedLengthRecordDataset.

#include <fmt/format.h>

#include "base/where.h"
#include "data/pass_state.h"
#include "io/file_cursor.h"
#include "io/record_format.h"

namespace berth::io {
namespace {

using data::ElementStream;
using data::PassInfo;

class RecordNode : public FileNode {
 public:
  RecordNode(const char* what, Site site, data::FileNames files,
             const data::FileOptions& options,
             std::unique_ptr<const RecordFormat> format)
      : FileNode(what, site, std::move(files), options.compression_type,
                 options.max_record_bytes),
        format_(std::move(format)) {}

  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  std::unique_ptr<ElementStream> batches(const PassInfo& pass, size_t size,
                                         bool drop_remainder) const override;
  const std::vector<TensorSpec>& specs() const override { return specs_; }
  const RecordFormat& format() const { return *format_; }

 private:
  std::unique_ptr<const RecordFormat> format_;
  std::vector<TensorSpec> specs_{{Shape{}, string_, {}}};
};

class RecordStream : public ElementStream {
 public:
  // size 0: single records.
  RecordStream(const RecordNode* node, const PassInfo& pass, size_t size,
               bool drop_remainder)
      : node_(node),
        cursor_(node, pass, node->format().slack()),
        size_(size),
        drop_remainder_(drop_remainder) {}

  bool next(Tensors* out) override {
    texts_.clear();
    const size_t wanted = size_ == 0 ? 1 : size_;
    while (texts_.count() < wanted && add()) {
    }
    const size_t n = texts_.count();
    if (n == 0 || (n < wanted && (drop_remainder_ || cursor_.stopped()))) {
      return false;
    }
    out->resize(1);
    (*out)[0] =
        texts_.tensor(size_ == 0 ? Shape{} : Shape{static_cast<int64_t>(n)});
    return true;
  }

  void save(data::PassWriter& w) override {
    w.begin(*node_);
    cursor_.save(w);
  }
  void restore(data::PassReader& r) override {
    r.begin(*node_);
    cursor_.restore(r);
  }

 private:
  // Adds a record; false at the end of the last file.
  bool add() {
    std::string_view record;
    try {
      for (;;) {
        if (cursor_.reader() == nullptr) {
          if (!cursor_.open_next()) return false;
          node_->format().begin(cursor_.reader());
        }
        if (node_->format().next(cursor_.reader(), &record)) break;
        cursor_.close();
      }
      check(record);
    } catch (const errors::Error& e) {
      cursor_.close();  // what follows damage is not to be found
      raise_of(*node_, e);
    }
    texts_.add(record);
    return true;
  }

  void check(std::string_view record) {
    if (record.size() <= node_->most()) return;
    throw errors::ResourceExhausted(fmt::format(
        "{}: the record before byte {} has {} bytes; expected at most {}: "
        "raise max_record_bytes",
        cursor_.reader()->name(), cursor_.reader()->offset(), record.size(),
        node_->most()));
  }

  const RecordNode* node_;
  FileCursor cursor_;
  size_t size_;
  bool drop_remainder_;
  TextColumn texts_;
};

std::unique_ptr<ElementStream> RecordNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<RecordStream>(this, pass, 0, false);
}

std::unique_ptr<ElementStream> RecordNode::batches(const PassInfo& pass,
                                                   size_t size,
                                                   bool drop_remainder) const {
  return std::make_unique<RecordStream>(this, pass, size, drop_remainder);
}

data::Dataset fixed_length(data::FileNames files, int64_t record_bytes,
                           const data::FixedLengthOptions& o, Site site) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const auto check = [&](const char* name, int64_t value, int64_t least) {
    if (value >= least && value <= kMost) return;
    data::refuse(
        call_text("FixedLengthRecordDataset", site),
        fmt::format("{} is {}; expected {} to {}", name, value, least, kMost));
  };
  check("record_bytes", record_bytes, 1);
  check("header_bytes", o.header_bytes, 0);
  check("footer_bytes", o.footer_bytes, 0);
  const char* what = "FixedLengthRecordDataset";
  return read_in_parallel(
      what, std::move(files), o.num_parallel_reads, site,
      [=](data::FileNames some) {
        return data::make_dataset<RecordNode>(
            what, site, std::move(some),
            data::FileOptions{o.compression_type, record_bytes},
            std::make_unique<FixedLengthFormat>(
                static_cast<size_t>(o.header_bytes),
                static_cast<size_t>(record_bytes),
                static_cast<size_t>(o.footer_bytes)));
      });
}

}  // namespace
}  // namespace berth::io

namespace berth::data {

TFRecordDataset::TFRecordDataset(FileNames filenames,
                                 const FileOptions& options, Site site)
    : Dataset(io::read_in_parallel(
          "TFRecordDataset", std::move(filenames), options.num_parallel_reads,
          site, [=](FileNames some) {
            return make_dataset<io::RecordNode>(
                "TFRecordDataset", site, std::move(some), options,
                std::make_unique<io::TFRecordFormat>(
                    static_cast<size_t>(options.max_record_bytes)));
          })) {}

TextLineDataset::TextLineDataset(FileNames filenames,
                                 const FileOptions& options, Site site)
    : Dataset(io::read_in_parallel(
          "TextLineDataset", std::move(filenames), options.num_parallel_reads,
          site, [=](FileNames some) {
            return make_dataset<io::RecordNode>(
                "TextLineDataset", site, std::move(some), options,
                std::make_unique<io::TextLineFormat>());
          })) {}

FixedLengthRecordDataset::FixedLengthRecordDataset(
    FileNames filenames, int64_t record_bytes,
    const FixedLengthOptions& options, Site site)
    : Dataset(io::fixed_length(std::move(filenames), record_bytes, options,
                               site)) {}

}  // namespace berth::data
