#include "device/holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/bytes_text.h"
#include "base/immortal.h"

namespace berth {

namespace {

constexpr size_t kMostNames = 4096;
constexpr size_t kListed = 6;

std::string line(const Holder& h, const std::string& name) {
  std::string s = fmt::format("\n  {} held by {}",
                              bytes_text(static_cast<int64_t>(h.bytes)), name);
  if (h.blocks > 1) s += fmt::format(" ({} blocks)", h.blocks);
  return s;
}

}  // namespace

const char* lasting_name(std::string_view text, const char* otherwise) {
  static std::mutex mutex;
  static auto& names = immortal<std::set<std::string, std::less<>>>();
  std::lock_guard lock(mutex);
  const auto it = names.find(text);
  if (it != names.end()) return it->c_str();
  if (names.size() >= kMostNames) return otherwise;
  return names.emplace(text).first->c_str();
}

namespace {
struct AllParts {
  std::mutex mutex;
  std::map<const char*, std::vector<HolderPart>> by_name;
};
AllParts& all_parts() {
  static auto& parts = immortal<AllParts>();
  return parts;
}
}  // namespace

void set_holder_parts(const char* name, std::vector<HolderPart> parts) {
  AllParts& all = all_parts();
  std::lock_guard lock(all.mutex);
  all.by_name[name] = std::move(parts);
}

std::vector<HolderPart> holder_parts(const char* name) {
  AllParts& all = all_parts();
  std::lock_guard lock(all.mutex);
  const auto it = all.by_name.find(name);
  return it == all.by_name.end() ? std::vector<HolderPart>{} : it->second;
}

std::string holders_text(const std::vector<Holder>& blocks) {
  std::map<std::string_view, Holder> by_name;
  for (const Holder& b : blocks) {
    const std::string_view name = b.name ? b.name : "";
    Holder& h = by_name.try_emplace(name, Holder{b.name, 0, 0}).first->second;
    h.bytes += b.bytes;
    h.blocks += b.blocks;
  }
  std::vector<Holder> top;
  for (const auto& [name, h] : by_name) top.push_back(h);
  std::stable_sort(
      top.begin(), top.end(),
      [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  std::string text;
  Holder rest{nullptr, 0, 0};
  for (size_t i = 0; i < top.size(); ++i) {
    if (i < kListed) {
      text += line(top[i], top[i].name ? top[i].name : "other tensors");
    } else {
      rest.bytes += top[i].bytes;
      rest.blocks += top[i].blocks;
    }
  }
  if (top.size() > kListed) {
    text += line(rest, fmt::format("{} more names", top.size() - kListed));
  }
  return text;
}

}  // namespace berth
