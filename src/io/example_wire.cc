// A reader of protobuf's encoding, as far as tf.train.Example needs it:
// https://protobuf.dev/programming-guides/encoding

#include "io/example_wire.h"

#include <bit>
#include <cstring>

namespace berth::io {
namespace {

// How a value is encoded. A length is a varint before the bytes; a group's
// fields follow, up to a tag of its number and kGroupEnd.
enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kDelimited = 2,
  kGroup = 3,
  kGroupEnd = 4,
  kFixed32 = 5
};

constexpr uint32_t tag_of(uint32_t field, WireType type) {
  return field << 3 | type;
}

// Reads the fields of a message, each a tag and a value. All functions fail
// after the first failure.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}

  // Returns the next tag; 0 at the end and after a failure.
  uint32_t tag() {
    uint64_t tag = 0;
    if (at_end() || !varint(&tag)) return 0;
    if (tag >> 3 == 0 || tag > UINT32_MAX) fail();
    return ok_ ? static_cast<uint32_t>(tag) : 0;
  }
  bool at_end() const { return left_.empty(); }
  // Once tag() has returned 0: true at the end of the message.
  bool finished() const { return ok_; }

  // Seven bits per byte, the lowest first; all bytes but the last have a bit
  // more.
  bool varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(left_[0]);
      left_.remove_prefix(1);
      *out |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return ok_;
    }
    return fail();
  }
  bool take(uint64_t n, std::string_view* out) {
    if (n > left_.size()) return fail();
    *out = left_.substr(0, n);
    left_.remove_prefix(n);
    return ok_;
  }
  bool view(std::string_view* out) {
    uint64_t n = 0;
    return varint(&n) && take(n, out);
  }
  // Passes over the value after a tag.
  bool skip(uint32_t tag, int depth = 0) {
    uint64_t number = 0;
    std::string_view bytes;
    switch (tag & 7) {
      case kVarint:
        return varint(&number);
      case kFixed64:
        return take(8, &bytes);
      case kDelimited:
        return view(&bytes);
      case kFixed32:
        return take(4, &bytes);
      case kGroup:
        return depth < kMostGroups ? skip_group(tag, depth + 1) : fail();
      default:
        return fail();
    }
  }

 private:
  static constexpr int kMostGroups = 100;  // in each other

  bool skip_group(uint32_t begin, int depth) {
    while (const uint32_t tag = this->tag()) {
      if (tag == tag_of(begin >> 3, kGroupEnd)) return true;
      if (!skip(tag, depth)) return false;
    }
    return fail();
  }
  bool fail() { return ok_ = false; }

  bool ok_ = true;
  std::string_view left_;
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
  std::string_view packed;
  const bool one = tag == tag_of(1, kFixed32);
  if (!(one ? list->take(4, &packed) : list->view(&packed))) return false;
  if (packed.size() % 4 != 0) return false;
  const size_t at = to->size();
  to->resize(at + packed.size() / 4);
  if (!packed.empty()) {
    std::memcpy(to->data() + at, packed.data(), packed.size());
  }
  if constexpr (std::endian::native == std::endian::big) {
    for (size_t i = at; i < to->size(); ++i) {
      const auto bits = std::bit_cast<uint32_t>((*to)[i]);
      (*to)[i] = std::bit_cast<float>(__builtin_bswap32(bits));
    }
  }
  return true;
}

bool read_ints(WireReader* list, uint32_t tag, std::vector<int64_t>* to) {
  uint64_t v = 0;
  if (tag == tag_of(1, kVarint)) {
    if (!list->varint(&v)) return false;
    to->push_back(static_cast<int64_t>(v));
    return true;
  }
  std::string_view packed;
  if (!list->view(&packed)) return false;
  WireReader numbers(packed);
  while (!numbers.at_end()) {
    if (!numbers.varint(&v)) return false;
    to->push_back(static_cast<int64_t>(v));
  }
  return true;
}

// BytesList, FloatList, Int64List: field 1, packed or not.
bool read_list(std::string_view bytes, FeatureKind kind, FeatureValues* to) {
  WireReader list(bytes);
  while (const uint32_t tag = list.tag()) {
    const uint32_t type = tag & 7;
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
    if (field > 3 || tag != tag_of(field, kDelimited)) {
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
