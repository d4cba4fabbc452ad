#include "rpc/call_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/environment.h"
#include "base/immortal.h"
#include "base/live_counts.h"

namespace berth::rpc {

namespace {

using Json = nlohmann::ordered_json;

template <size_t n>
void copy_to(std::array<char, n>* target, std::string_view text) {
  const size_t size = std::min(text.size(), n - 1);
  std::memcpy(target->data(), text.data(), size);
  (*target)[size] = '\0';
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// "calls.json" -> "calls.worker-1.json"; beside a profile, whose name has the
// task, "fit.worker-1.calls.json".
std::string path_of(const std::string& task) {
  namespace fs = std::filesystem;
  const std::string asked = environment("BERTH_CALL_LOG");
  if (!asked.empty()) {
    std::string name = task;
    std::replace(name.begin(), name.end(), ':', '-');
    const fs::path path(asked);
    return (path.parent_path() / fmt::format("{}.{}{}", path.stem().string(),
                                             name, path.extension().string()))
        .string();
  }
  const std::string profile = environment("BERTH_PROFILE");
  if (profile.empty()) return "";
  return fs::path(profile).replace_extension(".calls.json").string();
}

}  // namespace

CallLog& CallLog::get() {
  static CallLog& log = immortal<CallLog>();
  return log;
}

uint64_t CallLog::begin(const char* kind, std::string_view what,
                        std::string_view to, uint64_t sequence, int64_t bytes) {
  const double now = host_clock_us();
  std::lock_guard lock(mutex_);
  Call& c = calls_[next_ % kKept];
  c.kind = kind;
  copy_to(&c.what, what);
  copy_to(&c.to, to);
  c.sequence = sequence;
  c.bytes = bytes;
  c.begin_us = now;
  c.end_us = -1;
  return next_++;
}

void CallLog::end(uint64_t call) {
  const double now = host_clock_us();
  std::lock_guard lock(mutex_);
  if (next_ - call > kKept) return;
  Call& c = calls_[call % kKept];
  c.end_us = now;
  live_counts::add_exchange(c.kind, c.bytes, now - c.begin_us);
}

std::string CallLog::text(const std::string& task,
                          const std::string& failure) const {
  std::lock_guard lock(mutex_);
  const uint64_t first = next_ > kKept ? next_ - kKept : 0;
  std::string text = line_of({{"calls_of", task},
                              {"failure", failure},
                              {"now_us", host_clock_us()},
                              {"forgotten", first}});
  for (uint64_t k = first; k < next_; ++k) {
    const Call& c = calls_[k % kKept];
    text += line_of({{"kind", c.kind},
                     {"what", c.what.data()},
                     {"to", c.to.data()},
                     {"sequence", c.sequence},
                     {"bytes", c.bytes},
                     {"begin_us", c.begin_us},
                     {"end_us", c.end_us < 0 ? Json() : Json(c.end_us)}});
  }
  return text;
}

std::string CallLog::write(const std::string& task,
                           const std::string& failure) const {
  const std::string path = path_of(task);
  if (path.empty()) return "";
  std::ofstream out(path, std::ios::binary);
  out << text(task, failure);
  out.close();
  return out ? fmt::format("\n  the last calls of {}: {}", task, path)
             : fmt::format("\n  the last calls of {}: \"{}\" cannot be written",
                           task, path);
}

}  // namespace berth::rpc
