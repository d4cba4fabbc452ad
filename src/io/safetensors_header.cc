#include "io/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "berth/errors.h"

namespace berth::io {

namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr size_t kMostDimensions = 64;
constexpr size_t kHeaderAlignment = 64;

// Builds the header as the text is read: what does not belong there is refused
// where it begins, so that no text makes more of itself than its own size.
class HeaderReader {
 public:
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  bool null() { return scalar("null"); }
  bool boolean(bool) { return scalar("a bool"); }
  bool number_integer(number_integer_t n) {
    return fail(fmt::format("the number {} is negative", n));
  }
  bool number_unsigned(number_unsigned_t n) {
    if (list_ == nullptr) return scalar("a number");
    if (n > INT64_MAX)
      return fail(fmt::format("the number {} is too large", n));
    if (list_->size() >= kMostDimensions) return fail("a list is too long");
    list_->push_back(static_cast<int64_t>(n));
    return true;
  }
  bool number_float(number_float_t, const string_t&) {
    return scalar("a fraction");
  }
  bool string(string_t& text) {
    if (list_ != nullptr) return fail("a list holds text");
    if (depth_ == 2 && in_metadata_) {
      header.metadata[key_] = std::move(text);
      return true;
    }
    if (depth_ == 2 && key_ == "dtype") {
      header.entries.back().type = std::move(text);
      return true;
    }
    return scalar("text");
  }
  bool binary(binary_t&) { return fail("binary data"); }

  bool start_object(size_t) {
    if (list_ != nullptr || depth_ >= 2) return fail("an object lies too deep");
    ++depth_;
    if (depth_ != 2) return true;
    in_metadata_ = key_ == kMetadata;
    if (in_metadata_) return true;
    header.entries.push_back({key_, {}, {}, 0, 0});
    offsets_.clear();
    has_shape_ = false;
    return true;
  }
  bool key(string_t& text) {
    if (depth_ == 1 && !names_.insert(text).second) {
      return fail(fmt::format("\"{}\" stands there twice", text));
    }
    key_ = std::move(text);
    return true;
  }
  bool end_object() {
    --depth_;
    if (depth_ != 1 || in_metadata_) {
      in_metadata_ = false;
      return true;
    }
    SafetensorsEntry& e = header.entries.back();
    if (e.type.empty() || !has_shape_ || offsets_.size() != 2) {
      return fail(
          fmt::format("\"{}\" lacks dtype, shape or two data_offsets", e.name));
    }
    e.begin = static_cast<uint64_t>(offsets_[0]);
    e.end = static_cast<uint64_t>(offsets_[1]);
    return true;
  }
  bool start_array(size_t) {
    const bool shape = key_ == "shape", offsets = key_ == "data_offsets";
    if (list_ != nullptr || depth_ != 2 || in_metadata_ ||
        !(shape || offsets)) {
      return fail("a list stands where none belongs");
    }
    list_ = shape ? &header.entries.back().shape : &offsets_;
    list_->clear();
    has_shape_ = has_shape_ || shape;
    return true;
  }
  bool end_array() {
    list_ = nullptr;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const json::exception&) {
    return fail(fmt::format("it is no JSON from byte {} on", at));
  }

  SafetensorsHeader header;
  std::string problem;

 private:
  bool fail(std::string why) {
    if (problem.empty()) problem = std::move(why);
    return false;
  }
  // What may stand beside the fields that are known.
  bool scalar(const char* what) {
    if (depth_ == 2 && !in_metadata_ && list_ == nullptr && key_ != "dtype" &&
        key_ != "shape" && key_ != "data_offsets") {
      return true;
    }
    return fail(fmt::format("{} stands at \"{}\"", what, key_));
  }

  int depth_ = 0;
  bool in_metadata_ = false, has_shape_ = false;
  std::string key_;
  std::set<std::string> names_;
  std::vector<int64_t> offsets_;
  std::vector<int64_t>* list_ = nullptr;
};

// What is wrong with the entries, "" when nothing is.
std::string problem_of(const std::vector<SafetensorsEntry>& entries,
                       uint64_t data_bytes) {
  uint64_t at = 0;
  for (const SafetensorsEntry& e : entries) {
    if (e.begin > e.end || e.end > data_bytes) {
      return fmt::format(
          "\"{}\" lies at [{}, {}) of {} bytes of data: the file is "
          "truncated, or its header damaged",
          e.name, e.begin, e.end, data_bytes);
    }
    if (e.begin != at) {
      return fmt::format(
          "\"{}\" begins at {} where {} was expected: tensors "
          "{}",
          e.name, e.begin, at, e.begin < at ? "overlap" : "leave a hole");
    }
    at = e.end;
    const uint64_t width = safetensors_type_bytes(e.type);
    if (width == 0) continue;
    uint64_t bytes = width;
    bool fits = true;
    for (const int64_t d : e.shape) {
      fits = fits &&
             !__builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes);
    }
    // A zero after an overflow still makes an empty tensor.
    if (std::find(e.shape.begin(), e.shape.end(), 0) != e.shape.end()) {
      fits = true;
      bytes = 0;
    }
    if (!fits || bytes != e.end - e.begin) {
      return fmt::format(
          "\"{}\" has {} bytes, which its dtype {} and shape do "
          "not fit",
          e.name, e.end - e.begin, e.type);
    }
  }
  if (at == data_bytes) return {};
  return fmt::format("{} bytes follow the last tensor", data_bytes - at);
}

}  // namespace

uint64_t safetensors_type_bytes(std::string_view type) {
  constexpr std::pair<std::string_view, uint64_t> kTypes[] = {
      {"F64", 8},     {"F32", 4},    {"F16", 2},  {"BF16", 2}, {"I64", 8},
      {"I32", 4},     {"I16", 2},    {"I8", 1},   {"U64", 8},  {"U32", 4},
      {"U16", 2},     {"U8", 1},     {"BOOL", 1}, {"C64", 8},  {"F8_E4M3", 1},
      {"F8_E5M2", 1}, {"F8_E8M0", 1}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  return 0;
}

SafetensorsHeader parse_safetensors_header(std::string_view text,
                                           uint64_t data_bytes,
                                           const std::string& subject) {
  HeaderReader reader;
  std::string problem;
  // The format says that it begins with a brace.
  if (text.empty() || text[0] != '{') {
    problem = "it does not begin with {";
  } else if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    problem = std::move(reader.problem);
  } else {
    auto& entries = reader.header.entries;
    std::stable_sort(
        entries.begin(), entries.end(), [](const auto& a, const auto& b) {
          return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
        });
    problem = problem_of(entries, data_bytes);
  }
  if (problem.empty()) return std::move(reader.header);
  throw errors::DataLoss(
      fmt::format("{}: the header of the safetensors file is damaged: {}; "
                  "expected a whole file: copy or save it again",
                  subject, problem));
}

std::string print_safetensors_header(const SafetensorsHeader& header,
                                     const std::string& subject) {
  json text = json::object();
  for (const auto& [key, value] : header.metadata) text[kMetadata][key] = value;
  for (const SafetensorsEntry& e : header.entries) {
    if (e.name == kMetadata || text.contains(e.name)) {
      throw errors::InvalidArgument(
          fmt::format("{}: two tensors are called \"{}\", or the name is "
                      "reserved; expected names that differ",
                      subject, e.name));
    }
    text[e.name] = {{"dtype", e.type},
                    {"shape", e.shape},
                    {"data_offsets", {e.begin, e.end}}};
  }
  std::string out;
  try {
    out = text.dump();
  } catch (const json::exception&) {
    throw errors::InvalidArgument(fmt::format(
        "{}: a name or a text is not UTF-8; expected names that are", subject));
  }
  const size_t length = (out.size() + 8 + kHeaderAlignment - 1) /
                            kHeaderAlignment * kHeaderAlignment -
                        8;
  out.resize(length, ' ');
  if (length > kMostHeaderBytes) {
    throw errors::InvalidArgument(fmt::format(
        "{}: the header would have {} bytes; the format allows {}: shard the "
        "checkpoint",
        subject, length, kMostHeaderBytes));
  }
  std::string first(8, '\0');
  for (int i = 0; i < 8; ++i) {
    first[static_cast<size_t>(i)] =
        static_cast<char>(static_cast<uint64_t>(length) >> (8 * i) & 0xFF);
  }
  return first + out;
}

}  // namespace berth::io
