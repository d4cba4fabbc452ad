// read_file, write_file, matching_files, list_files, IdxDataset.

#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/urls.h"
#include "base/where.h"
#include "berth/data_files.h"
#include "berth/io.h"
#include "data/node.h"
#include "io/byte_source.h"
#include "io/idx.h"
#include "io/text_input.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::io {
namespace {

Tensor idx_tensor(const std::string& path) {
  const IdxData d = read_idx_file(path);
  const Shape shape(d.dims);
  DType dtype = uint8;
  switch (d.dtype) {
    case IdxType::kUint8:
      break;
    case IdxType::kInt8:
      dtype = int8;
      break;
    case IdxType::kInt16:
      dtype = int16;
      break;
    case IdxType::kInt32:
      dtype = int32;
      break;
    case IdxType::kFloat32:
      dtype = float32;
      break;
    case IdxType::kFloat64:
      dtype = float64;
      break;
  }
  Tensor t = data::make_batch(dtype, shape);
  std::memcpy(t.impl()->data(), d.bytes.data(), d.bytes.size());
  return t;
}

data::Dataset idx_dataset(const std::vector<std::string>& files, Site site) {
  Tensors all;
  named_call("IdxDataset", site, [&] {
    for (const std::string& file : files) all.push_back(idx_tensor(file));
  });
  return data::Dataset::from_tensor_slices(all, site);
}

}  // namespace

Tensor read_file(const std::string& filename, int64_t max_bytes, Site site) {
  return named_call("read_file", site, [&] {
    const auto source = file_source(filename);
    std::string bytes;
    for (auto in = source->peek(); !in.empty(); in = source->peek()) {
      bytes.append(reinterpret_cast<const char*>(in.data()), in.size());
      source->skip(in.size());
      if (static_cast<int64_t>(bytes.size()) > max_bytes) {
        throw errors::ResourceExhausted(
            fmt::format("\"{}\" has more than {} bytes; raise max_bytes",
                        filename, max_bytes));
      }
    }
    return text_tensor(bytes);
  });
}

Tensor read_file(const Tensor& filename, int64_t max_bytes, Site site) {
  return read_file(std::string(scalar_text(filename, "read_file", site)),
                   max_bytes, site);
}

void write_file(const std::string& filename, const Tensor& contents,
                Site site) {
  static std::atomic<uint64_t> serial{0};
  const std::string_view text = scalar_text(contents, "write_file", site);
  const std::string where = call_text("write_file", site);
  refuse_url(filename, where);
  const std::string part =
      fmt::format("{}.{}.{}.part", filename, getpid(), serial++);
  std::FILE* file = std::fopen(part.c_str(), "wxe");
  if (file == nullptr) raise_write(where, "open", part);
  const bool wrote =
      std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int code = errno;
  const bool closed = std::fclose(file) == 0;
  if (!wrote || !closed || std::rename(part.c_str(), filename.c_str()) != 0) {
    if (!wrote) errno = code;
    const int why = errno;
    std::remove(part.c_str());
    errno = why;
    raise_write(where, "write", filename);
  }
}

std::vector<std::string> matching_files(const std::string& pattern, Site site) {
  refuse_url(pattern, call_text("matching_files", site));
  glob_t found{};
  const int code = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> names;
  try {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      names.emplace_back(found.gl_pathv[i]);
    }
  } catch (...) {
    globfree(&found);
    throw;
  }
  globfree(&found);
  if (code == GLOB_NOSPACE) {
    throw errors::ResourceExhausted(
        fmt::format("{}: too many files match \"{}\"",
                    call_text("matching_files", site), pattern));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace berth::io

namespace berth::data {

IdxDataset::IdxDataset(const std::vector<std::string>& filenames, Site site)
    : Dataset(io::idx_dataset(filenames, site)) {}

Dataset list_files(const std::vector<std::string>& file_patterns,
                   const ListFilesOptions& options, Site site) {
  const std::string where = call_text("list_files", site);
  std::vector<std::string> all;
  for (const std::string& pattern : file_patterns) {
    const auto names = io::matching_files(pattern, site);
    if (names.empty()) {
      throw errors::NotFound(fmt::format(
          "{}: no file matches \"{}\"; check the folder", where, pattern));
    }
    all.insert(all.end(), names.begin(), names.end());
  }
  if (all.empty()) refuse(where, "no patterns were given; expected some");
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const auto n = static_cast<int64_t>(all.size());
  Dataset names = Dataset::from_tensor_slices({make_strings(all, {n})}, site);
  if (!options.shuffle) return names;
  return names.shuffle(n, {.seed = options.seed}, site);
}

}  // namespace berth::data
