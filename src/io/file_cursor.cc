#include "io/file_cursor.h"

#include <fmt/format.h>

#include "base/where.h"
#include "data/pass_state.h"
#include "io/text_input.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"
#include "tensor/text_block.h"

namespace berth::io {
namespace {

constexpr int64_t kMostRecordBytes = int64_t{1} << 40;

}  // namespace

FileNode::FileNode(const char* what, Site site, data::FileNames files,
                   const std::string& compression, int64_t max_record_bytes)
    : Node(what, site),
      files_(std::move(files)),
      most_(static_cast<size_t>(max_record_bytes)) {
  if (!parse_compression(compression, &compression_)) {
    data::refuse(where(), fmt::format("compression_type is \"{}\"; expected "
                                      "\"\", \"GZIP\" or \"ZLIB\"",
                                      compression));
  }
  if (max_record_bytes < 1 || max_record_bytes > kMostRecordBytes) {
    data::refuse(where(), fmt::format("max_record_bytes is {}; expected 1 to "
                                      "{}",
                                      max_record_bytes, kMostRecordBytes));
  }
}

data::Dataset read_in_parallel(
    const char* what, data::FileNames files, int64_t num_parallel_reads,
    Site site, const std::function<data::Dataset(data::FileNames)>& make) {
  if (num_parallel_reads == 0 || num_parallel_reads == 1) {
    return make(std::move(files));
  }
  if (num_parallel_reads != data::AUTOTUNE &&
      (num_parallel_reads < 0 || num_parallel_reads > 4096)) {
    data::refuse(call_text(what, site),
                 fmt::format("num_parallel_reads is {}; expected 0 to 4096, or "
                             "data::AUTOTUNE",
                             num_parallel_reads));
  }
  make({});  // refuses options that cannot be
  const data::Dataset names =
      files.dataset()
          ? *files.dataset()
          : data::Dataset::from_tensor_slices(
                {make_strings(files.names(),
                              {static_cast<int64_t>(files.names().size())})},
                site);
  return names.interleave(
      [make, what, site](const Tensors& e) {
        return make(std::string(scalar_text(e.at(0), what, site)));
      },
      {.cycle_length = num_parallel_reads,
       .num_parallel_calls = num_parallel_reads},
      site);
}

FileCursor::FileCursor(const FileNode* node, const data::PassInfo& pass,
                       size_t slack)
    : node_(node), slack_(slack), stop_(pass.stop) {
  if (const auto& names = node->files().dataset()) {
    names_ = names->node().open(pass);
  } else if (pass.shard.files == node) {
    index_ = static_cast<size_t>(pass.shard.index);
    stride_ = static_cast<size_t>(pass.shard.tasks);
  }
}

bool FileCursor::open_next() {
  const std::optional<std::string> name = next_name();
  if (!name || stopped()) return false;
  open(*name);
  return true;
}

void FileCursor::save(data::PassWriter& w) const {
  w.put(static_cast<int64_t>(index_));
  w.put(names_ != nullptr);
  if (names_) names_->save(w);
  w.put(reader_ != nullptr);
  if (!reader_) return;
  w.put(name_);
  w.put(reader_->offset());
}

void FileCursor::restore(data::PassReader& r) {
  index_ = static_cast<size_t>(r.number(0));
  if (r.flag() != (names_ != nullptr)) {
    r.damaged("its file names come from elsewhere");
  }
  if (names_) names_->restore(r);
  if (!r.flag()) return;
  const std::string name = r.text();
  const auto offset = static_cast<uint64_t>(r.number(0));
  const auto& known = node_->files().names();
  if (!names_ && (index_ < stride_ || index_ - stride_ >= known.size() ||
                  known[index_ - stride_] != name)) {
    r.damaged(
        fmt::format("it stands in \"{}\", which is not that file of this "
                    "pipeline",
                    name));
  }
  open(name);
  if (reader_->skip(offset) != offset) {
    r.damaged(fmt::format(
        "it stands at byte {} of \"{}\", which is shorter now", offset, name));
  }
}

void raise_of(const FileNode& node, const errors::Error& e) {
  const std::string where = node.where();
  const std::string message = e.what();
  if (message.starts_with(where)) throw;
  errors::raise(e.code(), where + ": " + message);
}

void FileCursor::open(const std::string& name) {
  name_ = name;
  const std::string title = fmt::format("\"{}\"", name);
  try {
    reader_ = std::make_unique<WindowReader>(
        decompress(file_source(name), node_->compression(), title), title,
        node_->most() + slack_);
  } catch (const errors::Error& e) {
    errors::raise(e.code(), fmt::format("{}: {}", node_->where(), e.what()));
  }
}

std::optional<std::string> FileCursor::next_name() {
  const size_t index = std::exchange(index_, index_ + stride_);
  if (!names_) {
    const auto& names = node_->files().names();
    if (index >= names.size()) return std::nullopt;
    return names[index];
  }
  Tensors element;
  if (!names_->next(&element)) return std::nullopt;
  if (element.size() != 1 || element[0].dtype() != string_ ||
      element[0].num_elements() != 1) {
    data::refuse(
        node_->where(),
        fmt::format("element {} of the dataset of file names is {}; "
                    "expected one scalar string",
                    index,
                    element.empty() ? "empty" : element[0].spec().str()));
  }
  return std::string(string_at(element[0].impl()->data(), 1, 0));
}

Tensor TextColumn::tensor(const Shape& shape) const {
  return make_texts(starts_, text_, shape);
}

}  // namespace berth::io
