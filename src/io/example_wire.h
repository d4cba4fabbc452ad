// The wire format of tf.train.Example and SequenceExample.
//
// Views point into the message. Functions return false for bytes that are no
// such message. Pure; thread-safe.

#ifndef BERTH_IO_EXAMPLE_WIRE_H_
#define BERTH_IO_EXAMPLE_WIRE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_cursor.h"

namespace berth::io {

enum class FeatureKind { kNone, kBytes, kFloat, kInt64 };
const char* kind_name(FeatureKind kind);

// Called with a name and the bytes of its Feature or FeatureList.
using OnFeature =
    std::function<void(std::string_view name, std::string_view bytes)>;

// Walks an Example: the features of its field 1.
bool walk_example(std::string_view message, const OnFeature& on_feature);
// Walks a SequenceExample: context in field 1, feature lists in field 2.
bool walk_sequence_example(std::string_view message, const OnFeature& context,
                           const OnFeature& list);
// Calls `on_feature` with the bytes of each Feature of a FeatureList.
bool walk_feature_list(std::string_view list,
                       const std::function<void(std::string_view)>& on_feature);

// Values of a Feature, added to those of the features before.
struct FeatureValues {
  std::vector<float> floats;
  std::vector<int64_t> ints;
  TextColumn texts;
  size_t count(FeatureKind kind) const;
};
// Reads a Feature of `wanted` kind; `kind` is what it really is, and only
// values of the wanted kind are added.
bool read_feature(std::string_view bytes, FeatureKind wanted, FeatureKind* kind,
                  FeatureValues* to);

}  // namespace berth::io

#endif  // BERTH_IO_EXAMPLE_WIRE_H_
