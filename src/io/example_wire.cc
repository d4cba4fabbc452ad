#include "io/example_wire.h"

#include <ostream>
// Behind <ostream>, see CMakeLists.txt.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <bit>
#include <climits>
#include <cstring>

namespace berth::io {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint32_t tag_of(int field, WireFormatLite::WireType type) {
  return static_cast<uint32_t>(field) << 3 | static_cast<uint32_t>(type);
}
constexpr auto kVarint = WireFormatLite::WIRETYPE_VARINT;
constexpr auto kDelimited = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
constexpr auto kFixed32 = WireFormatLite::WIRETYPE_FIXED32;

class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : ok_(bytes.size() <= INT_MAX),
        in_(reinterpret_cast<const uint8_t*>(bytes.data()),
            ok_ ? static_cast<int>(bytes.size()) : 0) {}

  // The next tag; 0 at the end, and when something was wrong.
  uint32_t tag() { return ok_ ? in_.ReadTag() : 0; }
  // False unless the bytes ended where a field does.
  bool finished() { return ok_ && in_.ConsumedEntireMessage(); }

  bool view(std::string_view* out) {
    uint32_t n = 0;
    if (!in_.ReadVarint32(&n)) return fail();
    *out = {};
    if (n == 0) return true;
    const void* p = nullptr;
    int have = 0;
    if (n > INT_MAX || !in_.GetDirectBufferPointer(&p, &have) ||
        static_cast<int>(n) > have) {
      return fail();
    }
    *out = {static_cast<const char*>(p), n};
    return in_.Skip(static_cast<int>(n)) || fail();
  }
  bool skip(uint32_t tag) {
    return WireFormatLite::SkipField(&in_, tag) || fail();
  }
  CodedInputStream& in() { return in_; }
  bool fail() { return ok_ = false; }

 private:
  bool ok_;
  CodedInputStream in_;
};

// map<string, message>: entries of key 1 and value 2.
bool walk_map(std::string_view bytes, const OnFeature& on_entry) {
  WireReader fields(bytes);
  while (const uint32_t tag = fields.tag()) {
    std::string_view entry;
    if (tag != tag_of(1, kDelimited)) {
      if (!fields.skip(tag)) return false;
      continue;
    }
    if (!fields.view(&entry)) return false;
    WireReader parts(entry);
    std::string_view key, value;
    while (const uint32_t part = parts.tag()) {
      const bool known =
          part == tag_of(1, kDelimited) || part == tag_of(2, kDelimited);
      if (!known ? !parts.skip(part)
                 : !parts.view(part == tag_of(1, kDelimited) ? &key : &value)) {
        return false;
      }
    }
    if (!parts.finished()) return false;
    on_entry(key, value);
  }
  return fields.finished();
}

bool read_floats(WireReader* list, uint32_t tag, std::vector<float>* to) {
  if (tag == tag_of(1, kFixed32)) {
    uint32_t bits = 0;
    if (!list->in().ReadLittleEndian32(&bits)) return false;
    to->push_back(std::bit_cast<float>(bits));
    return true;
  }
  std::string_view packed;
  if (!list->view(&packed) || packed.size() % 4 != 0) return false;
  const size_t n = packed.size() / 4, at = to->size();
  to->resize(at + n);
  if constexpr (std::endian::native == std::endian::little) {
    if (n > 0) std::memcpy(to->data() + at, packed.data(), packed.size());
  } else {
    WireReader numbers(packed);
    for (size_t i = 0; i < n; ++i) {
      uint32_t bits = 0;
      numbers.in().ReadLittleEndian32(&bits);
      (*to)[at + i] = std::bit_cast<float>(bits);
    }
  }
  return true;
}

bool read_ints(WireReader* list, uint32_t tag, std::vector<int64_t>* to) {
  uint64_t v = 0;
  if (tag == tag_of(1, kVarint)) {
    if (!list->in().ReadVarint64(&v)) return false;
    to->push_back(static_cast<int64_t>(v));
    return true;
  }
  std::string_view packed;
  if (!list->view(&packed)) return false;
  CodedInputStream numbers(reinterpret_cast<const uint8_t*>(packed.data()),
                           static_cast<int>(packed.size()));
  while (numbers.CurrentPosition() < static_cast<int>(packed.size())) {
    if (!numbers.ReadVarint64(&v)) return false;
    to->push_back(static_cast<int64_t>(v));
  }
  return true;
}

// BytesList, FloatList, Int64List: field 1, packed or not.
bool read_list(std::string_view bytes, FeatureKind kind, FeatureValues* to) {
  WireReader list(bytes);
  while (const uint32_t tag = list.tag()) {
    const auto type = static_cast<WireFormatLite::WireType>(tag & 7);
    const bool packed = type == kDelimited;
    bool ok = false;
    if (tag >> 3 != 1) {
      ok = list.skip(tag);
    } else if (kind == FeatureKind::kBytes && packed) {
      std::string_view text;
      ok = list.view(&text);
      if (ok) to->texts.add(text);
    } else if (kind == FeatureKind::kFloat && (packed || type == kFixed32)) {
      ok = read_floats(&list, tag, &to->floats);
    } else if (kind == FeatureKind::kInt64 && (packed || type == kVarint)) {
      ok = read_ints(&list, tag, &to->ints);
    }
    if (!ok) return false;
  }
  return list.finished();
}

}  // namespace

const char* kind_name(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kBytes:
      return "strings";
    case FeatureKind::kFloat:
      return "float32";
    case FeatureKind::kInt64:
      return "int64";
    default:
      return "nothing";
  }
}

size_t FeatureValues::count(FeatureKind kind) const {
  switch (kind) {
    case FeatureKind::kBytes:
      return texts.count();
    case FeatureKind::kFloat:
      return floats.size();
    case FeatureKind::kInt64:
      return ints.size();
    default:
      return 0;
  }
}

bool walk_example(std::string_view message, const OnFeature& on_feature) {
  return walk_sequence_example(message, on_feature, {});
}

bool walk_sequence_example(std::string_view message, const OnFeature& context,
                           const OnFeature& list) {
  WireReader fields(message);
  while (const uint32_t tag = fields.tag()) {
    const bool is_context = tag == tag_of(1, kDelimited);
    const bool is_list = tag == tag_of(2, kDelimited) && list;
    std::string_view part;
    if (!is_context && !is_list) {
      if (!fields.skip(tag)) return false;
    } else if (!fields.view(&part) ||
               !walk_map(part, is_context ? context : list)) {
      return false;
    }
  }
  return fields.finished();
}

bool walk_feature_list(
    std::string_view list,
    const std::function<void(std::string_view)>& on_feature) {
  WireReader fields(list);
  while (const uint32_t tag = fields.tag()) {
    std::string_view feature;
    if (tag != tag_of(1, kDelimited)) {
      if (!fields.skip(tag)) return false;
      continue;
    }
    if (!fields.view(&feature)) return false;
    on_feature(feature);
  }
  return fields.finished();
}

bool read_feature(std::string_view bytes, FeatureKind wanted, FeatureKind* kind,
                  FeatureValues* to) {
  *kind = FeatureKind::kNone;
  std::string_view list;
  WireReader fields(bytes);
  while (const uint32_t tag = fields.tag()) {
    const uint32_t field = tag >> 3;
    if (field < 1 || field > 3 ||
        tag != tag_of(static_cast<int>(field), kDelimited)) {
      if (!fields.skip(tag)) return false;
      continue;
    }
    if (!fields.view(&list)) return false;
    *kind = static_cast<FeatureKind>(field);
  }
  if (!fields.finished()) return false;
  return *kind != wanted || read_list(list, wanted, to);
}

}  // namespace berth::io
