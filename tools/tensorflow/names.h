// DeviceNameUtils over berth::DeviceName. Included by shim.h.

#ifndef BERTH_TOOLS_TENSORFLOW_NAMES_H_
#define BERTH_TOOLS_TENSORFLOW_NAMES_H_

#include "tools/tensorflow/shim.h"

namespace tensorflow {

class DeviceNameUtils {
 public:
  struct ParsedName {
    bool has_job = false, has_replica = false, has_task = false,
         has_type = false, has_id = false;
    string job, type;
    int replica = 0, task = 0, id = 0;
    bool operator==(const ParsedName& o) const { return back() == o.back(); }
    bool operator!=(const ParsedName& o) const { return !(*this == o); }
    void Clear() { *this = {}; }

    ParsedName() = default;
    explicit ParsedName(const berth::DeviceName& n)
        : has_job(n.job.has_value()),
          has_replica(n.replica.has_value()),
          has_task(n.task.has_value()),
          has_type(n.type.has_value()),
          has_id(n.id.has_value()),
          job(n.job.value_or("")),
          type(n.type.value_or("")),
          replica(n.replica.value_or(0)),
          task(n.task.value_or(0)),
          id(n.id.value_or(0)) {}
    berth::DeviceName back() const {
      berth::DeviceName n;
      if (has_job) n.job = job;
      if (has_replica) n.replica = replica;
      if (has_task) n.task = task;
      if (has_type) n.type = type;
      if (has_id) n.id = id;
      return n;
    }
  };

  static bool ParseFullName(StringPiece text, ParsedName* p) {
    return taken([&] { *p = ParsedName(berth::DeviceName::parse(text)); });
  }
  static bool ParseLocalName(StringPiece text, ParsedName* p) {
    ParsedName local;
    const bool read = ParseFullName(text, &local) && local.has_type &&
                      local.has_id && !local.has_job && !local.has_replica &&
                      !local.has_task;
    if (read) *p = local;
    return read;
  }
  static bool ParseFullOrLocalName(StringPiece text, ParsedName* p) {
    return ParseFullName(text, p) || ParseLocalName(text, p);
  }
  static string ParsedNameToString(const ParsedName& p) {
    return p.back().str();
  }
  static string FullName(const string& job, int replica, int task,
                         const string& type, int id) {
    return berth::DeviceName{job, replica, task, type, id}.str();
  }
  static string LocalName(StringPiece type, int id) {
    return absl::StrCat("/device:", type, ":", id);
  }
  static string LocalName(StringPiece full) {
    const berth::DeviceName n = berth::DeviceName::parse(full);
    return LocalName(n.type.value_or(""), n.id.value_or(0));
  }
  static string LegacyName(const string& job, int replica, int task,
                           const string& type, int id) {
    return FullName(job, replica, task, type, id);
  }
  static bool SplitDeviceName(StringPiece name, string* task, string* device) {
    ParsedName p;
    if (!ParseFullName(name, &p) || !p.has_type) return false;
    *device = absl::StrCat(p.type, ":", p.id);
    p.has_type = p.has_id = false;
    *task = ParsedNameToString(p);
    return true;
  }
  static bool IsSameAddressSpace(StringPiece a, StringPiece b) {
    return berth::is_same_address_space(berth::DeviceName::parse(a),
                                        berth::DeviceName::parse(b));
  }
  static bool IsCompleteSpecification(const ParsedName& pattern,
                                      const ParsedName& name) {
    return berth::is_complete_specification(pattern.back(), name.back());
  }
  static bool IsSpecification(const ParsedName& less, const ParsedName& more) {
    return less.back().matches(more.back());
  }
  static bool AreCompatibleDevNames(const ParsedName& a, const ParsedName& b) {
    return berth::are_compatible(a.back(), b.back());
  }
  static void EnsureSpecification(ParsedName* more, const ParsedName& less) {
    *more = ParsedName(berth::ensure_specification(more->back(), less.back()));
  }
  static Status MergeDevNames(ParsedName* target, const ParsedName& other,
                              bool soft = false) {
    return merge(
        target, other,
        soft ? berth::MergeConflict::kDrop : berth::MergeConflict::kFail);
  }
  static Status MergeOverrideDevNames(ParsedName* target,
                                      const ParsedName& other) {
    return merge(target, other, berth::MergeConflict::kOverride);
  }
  static void MergeUnsetDevNames(ParsedName* target, const ParsedName& other) {
    EnsureSpecification(target, other);
  }
  static Status CanonicalizeDeviceName(StringPiece text, StringPiece base,
                                       string* full) {
    full->clear();
    try {
      *full = berth::canonicalise(text, base);
    } catch (const berth::errors::Error& e) {
      return refused(e);
    }
    return Status::OK();
  }
  // The older spelling, for those who map names from both.
  static std::vector<string> GetNamesForDeviceMappings(const ParsedName& p) {
    if (!p.back().is_complete()) return {};
    berth::DeviceName n = p.back();
    string type = *n.type;
    for (char& c : type) c = static_cast<char>(std::tolower(c));
    n.type.reset();
    return {p.back().str(), absl::StrCat(n.str(), "/", type, ":", p.id)};
  }

 private:
  template <class Fn>
  static bool taken(Fn&& fn) {
    try {
      fn();
    } catch (const berth::errors::Error&) {
      return false;
    }
    return true;
  }
  static Status merge(ParsedName* target, const ParsedName& other,
                      berth::MergeConflict conflict) {
    try {
      *target =
          ParsedName(berth::merge(target->back(), other.back(), conflict));
    } catch (const berth::errors::Error& e) {
      return refused(e);
    }
    return Status::OK();
  }
};

}  // namespace tensorflow

#endif  // BERTH_TOOLS_TENSORFLOW_NAMES_H_
