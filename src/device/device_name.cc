#include "device/device_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/parse_among.h"

namespace berth {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void malformed(std::string_view text, std::string_view why) {
  throw errors::InvalidArgument(fmt::format(
      "malformed device name '{}': {}; expected for example '/GPU:0', 'CPU:1' "
      "or '/job:worker/task:1/device:GPU:0'",
      text, why));
}

bool is_identifier(std::string_view s) {
  if (s.empty() || !is_letter(s[0])) return false;
  return std::all_of(s.begin(), s.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '_';
  });
}

std::optional<int> parse_number(std::string_view text, std::string_view part,
                                std::string_view value) {
  if (value == "*") return std::nullopt;
  if (value.empty() || value.size() > 9 ||
      !std::all_of(value.begin(), value.end(), is_digit)) {
    malformed(text,
              fmt::format("{} is '{}', expected a number or '*'", part, value));
  }
  return std::stoi(std::string(value));
}

std::string upper(std::string_view s) {
  std::string r(s);
  for (char& c : r) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return r;
}

// Sets a part once; a second, different value has no single meaning.
template <class T>
void set_once(std::string_view text, const char* part, bool* seen,
              std::optional<T>* slot, std::optional<T> value) {
  if (*seen && *slot != value) {
    malformed(text, fmt::format("it gives two values for {}", part));
  }
  *seen = true;
  *slot = std::move(value);
}

struct Parser {
  std::string_view text;
  std::string_view devices;
  DeviceName name = {};
  bool job = false, replica = false, task = false, type = false, id = false;

  void device(std::string_view type_text, std::optional<std::string_view> num) {
    if (type_text == "*") {
      if (num && *num != "*") {
        malformed(text, "a device number needs a device type");
      }
      return set_once(text, "the device type", &type, &name.type, {});
    }
    if (!is_identifier(type_text)) {
      malformed(text, fmt::format("device type '{}' is not a word", type_text));
    }
    set_once<std::string>(text, "the device type", &type, &name.type,
                          upper(type_text));
    std::optional<int> value;
    if (num) value = parse_number(text, "the device number", *num);
    set_once(text, "the device number", &id, &name.id, value);
  }

  [[noreturn]] void physical_device(const std::vector<std::string_view>& f) {
    const std::string type = f.size() > 1 ? upper(f[1]) : "GPU";
    const std::string_view id = f.size() > 2 ? f[2] : "0";
    throw errors::InvalidArgument(fmt::format(
        "malformed device name '{}': it is the name of a physical device, "
        "which may be hidden or cut into several; write '/{}:{}', or the name "
        "of a logical device: config::list_logical_devices(\"{}\")[{}].name",
        text, type, id, type, id));
  }

  // What others call a GPU is one; other types are those of plug-ins.
  [[noreturn]] void unknown_type(std::string_view key, std::string_view p) {
    constexpr std::string_view kOthers[] = {"CUDA", "NVIDIA", "ROCM", "HIP",
                                            "MPS",  "METAL",  "XPU"};
    const bool gpu = std::find(std::begin(kOthers), std::end(kOthers),
                               upper(key)) != std::end(kOthers);
    const size_t colon = p.find(':');
    const std::string word = upper(key);
    if ((word.starts_with("GPU") || word.starts_with("CPU")) &&
        std::all_of(word.begin() + 3, word.end(), is_digit)) {
      malformed(text, fmt::format("the type is not '{}'; write '/{}:{}'", key,
                                  word.substr(0, 3), word.substr(3)));
    }
    const std::string here = !devices.empty() ? std::string(devices)
                             : DeviceManager::initialised()
                                 ? DeviceManager::get().list()
                                 : "those that `berth devices` lists";
    malformed(text,
              fmt::format(
                  "'{}' is neither a part (job, replica, task, device) nor "
                  "CPU or GPU; {}; there are {}",
                  key,
                  gpu ? fmt::format("write '/GPU:{}'",
                                    colon == p.npos ? "0" : p.substr(colon + 1))
                      : fmt::format("write '/device:{}' for a device of a "
                                    "plug-in, else one that exists",
                                    p),
                  here));
  }

  void part(std::string_view p) {
    std::vector<std::string_view> f;
    for (size_t at = 0;;) {
      const size_t colon = p.find(':', at);
      f.push_back(p.substr(at, colon - at));
      if (colon == std::string_view::npos) break;
      at = colon + 1;
    }
    const std::string_view key = f[0];
    if (key == "physical_device") physical_device(f);
    if (key == "job" && f.size() == 2) {
      std::optional<std::string> value;
      if (f[1] != "*") {
        if (!is_identifier(f[1])) {
          malformed(text, fmt::format("job '{}' is not a word", f[1]));
        }
        value = std::string(f[1]);
      }
      set_once(text, "the job", &job, &name.job, value);
    } else if (key == "replica" && f.size() == 2) {
      set_once(text, "the replica", &replica, &name.replica,
               parse_number(text, "replica", f[1]));
    } else if (key == "task" && f.size() == 2) {
      set_once(text, "the task", &task, &name.task,
               parse_number(text, "task", f[1]));
    } else if (key == "device" && (f.size() == 2 || f.size() == 3)) {
      device(f[1], f.size() == 3 ? std::optional(f[2]) : std::nullopt);
    } else if (f.size() <= 2 && is_identifier(key) && key != "job" &&
               key != "replica" && key != "task" && key != "device") {
      if (upper(key) != "CPU" && upper(key) != "GPU") unknown_type(key, p);
      device(key, f.size() == 2 ? std::optional(f[1]) : std::nullopt);
    } else {
      malformed(text, fmt::format("part '{}' has no meaning", p));
    }
  }
};

}  // namespace

DeviceName parse_among(std::string_view text, std::string_view devices) {
  Parser parser{text, devices};
  std::string_view rest = text;
  if (!rest.empty() && rest[0] == '/') rest.remove_prefix(1);
  if (rest.empty()) return {};
  for (;;) {
    const size_t slash = rest.find('/');
    parser.part(rest.substr(0, slash));
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  return parser.name;
}

DeviceName DeviceName::parse(std::string_view text) {
  return parse_among(text, {});
}

std::string DeviceName::str() const {
  std::string s;
  if (job) s += fmt::format("/job:{}", *job);
  if (replica) s += fmt::format("/replica:{}", *replica);
  if (task) s += fmt::format("/task:{}", *task);
  if (type) {
    s += fmt::format("/device:{}:{}", *type, id ? std::to_string(*id) : "*");
  }
  return s;
}

std::string DeviceName::short_str() const {
  std::string s;
  if (job && *job != "localhost") {
    s = fmt::format("{}:{}/", *job, task ? std::to_string(*task) : "*");
  }
  return s + fmt::format("{}:{}", type.value_or("*"),
                         id ? std::to_string(*id) : "*");
}

DeviceName DeviceName::merged_over(const DeviceName& outer) const {
  DeviceName r = *this;
  if (!r.job) r.job = outer.job;
  if (!r.replica) r.replica = outer.replica;
  if (!r.task) r.task = outer.task;
  const bool same_type = !r.type || r.type == outer.type;
  if (!r.type) r.type = outer.type;
  if (!r.id && same_type) r.id = outer.id;
  return r;
}

bool DeviceName::matches(const DeviceName& specific) const {
  const DeviceName& s = specific;
  return (!job || job == s.job) && (!replica || replica == s.replica) &&
         (!task || task == s.task) && (!type || type == s.type) &&
         (!id || id == s.id);
}

namespace {

template <class T>
bool differ(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && *a != *b;
}

[[noreturn]] void cannot_merge(const char* parts, const DeviceName& a,
                               const DeviceName& b) {
  throw errors::InvalidArgument(
      fmt::format("cannot merge devices with incompatible {}: '{}' and '{}'; "
                  "expected equal ones, or one of them left open",
                  parts, a.str(), b.str()));
}

template <class T>
void fill(std::optional<T>* part, const std::optional<T>& from) {
  if (!*part) *part = from;
}

}  // namespace

DeviceName merge(const DeviceName& target, const DeviceName& other,
                 MergeConflict conflict) {
  if (differ(target.job, other.job)) cannot_merge("jobs", target, other);
  if (differ(target.replica, other.replica)) {
    cannot_merge("replicas", target, other);
  }
  if (differ(target.task, other.task)) cannot_merge("tasks", target, other);
  DeviceName r = target;
  fill(&r.job, other.job);
  fill(&r.replica, other.replica);
  fill(&r.task, other.task);
  if (differ(target.type, other.type)) {
    if (conflict == MergeConflict::kFail) cannot_merge("types", target, other);
    r.type.reset();
    r.id.reset();
    if (conflict == MergeConflict::kDrop) return r;
  }
  fill(&r.type, other.type);
  if (differ(r.id, other.id)) {
    if (conflict == MergeConflict::kFail) cannot_merge("ids", target, other);
    r.id.reset();
    if (conflict == MergeConflict::kDrop) return r;
  }
  fill(&r.id, other.id);
  return r;
}

std::string canonicalise(std::string_view text, std::string_view base) {
  const DeviceName outer = DeviceName::parse(base);
  if (!outer.is_complete()) {
    throw errors::InvalidArgument(
        fmt::format("device name '{}' cannot be completed from '{}'; expected "
                    "a base with all parts, such as "
                    "'/job:localhost/replica:0/task:0/device:CPU:0'",
                    text, base));
  }
  DeviceName full = DeviceName::parse(text).merged_over(outer);
  if (!full.id) full.id = 0;
  return full.str();
}

bool are_compatible(const DeviceName& a, const DeviceName& b) {
  return !differ(a.job, b.job) && !differ(a.replica, b.replica) &&
         !differ(a.task, b.task) && !differ(a.type, b.type) &&
         !differ(a.id, b.id);
}

}  // namespace berth
