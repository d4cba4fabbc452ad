// Walks the messages of tf.train.Example.

#include "io/example_wire.h"

#include <bit>
#include <cstring>

#include "base/wire_reader.h"

namespace berth::io {
namespace {

using wire::kDelimited;
using wire::kFixed32;
using wire::kVarint;
using wire::tag_of;

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
