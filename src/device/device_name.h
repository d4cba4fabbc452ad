// DeviceName: the one grammar of device names.
//
// Full form "/job:J/replica:R/task:T/device:TYPE:ID"; every part is optional,
// "*" leaves a part open, parts may come in any order. Also accepted:
// "/GPU:0", "GPU:0", "gpu:1", "GPU". The type is upper-cased. Where
// TensorFlow's two parsers disagree, what is unambiguous is accepted and the
// rest is refused with the reason (tf.DeviceSpec, DeviceNameUtils).
// Values; thread-safe.

#ifndef BERTH_DEVICE_DEVICE_NAME_H_
#define BERTH_DEVICE_DEVICE_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth {

struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // upper case
  std::optional<int> id;

  // Parses `text`. "" and "/" are the empty name.
  // Throws errors::InvalidArgument: what is malformed, where, and what to
  // write instead.
  static DeviceName parse(std::string_view text);

  // Prints the parts that are set, in canonical order; "" when none is.
  std::string str() const;
  // "GPU:0"; of another job than localhost "worker:1/GPU:0".
  std::string short_str() const;

  bool empty() const { return !job && !replica && !task && !type && !id; }
  bool is_complete() const { return job && replica && task && type && id; }

  // Returns this name with its unset parts taken from `outer` (nested scopes:
  // the inner scope wins part by part). A type given here without an id does
  // not inherit an id that belonged to another type.
  DeviceName merged_over(const DeviceName& outer) const;

  // True when every part set here equals that part of `specific`
  // (IsSpecification).
  bool matches(const DeviceName& specific) const;

  bool operator==(const DeviceName&) const = default;
};

// What merge() does when both names give a type, or a number, and they differ.
enum class MergeConflict : uint8_t {
  kFail,      // error
  kDrop,      // leaves that part open, a type with its number (soft placement)
  kOverride,  // `other` wins
};

// Returns `target` with the parts that `other` adds. Throws
// errors::InvalidArgument "cannot merge devices with incompatible ...: 'A' and
// 'B'"; jobs, replicas and tasks that differ always do (MergeDevNames,
// MergeOverrideDevNames).
DeviceName merge(const DeviceName& target, const DeviceName& other,
                 MergeConflict conflict = MergeConflict::kFail);

// Returns the full name of `text`: open parts from `base`, which must be
// complete, but no number of another type: that is 0. Throws
// errors::InvalidArgument (CanonicalizeDeviceName).
std::string canonicalise(std::string_view text, std::string_view base);

// True when no part that both give differs: some device may match both
// (AreCompatibleDevNames).
bool are_compatible(const DeviceName& a, const DeviceName& b);

}  // namespace berth

#endif  // BERTH_DEVICE_DEVICE_NAME_H_
