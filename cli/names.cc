#include "cli/names.h"

#include <algorithm>

#include "base/edit_distance.h"

namespace berth::cli {

std::string nearest_names(const std::string& name,
                          const std::vector<std::string>& known) {
  const auto lower = [](std::string s) {
    for (char& c : s) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return s;
  };
  std::vector<std::pair<size_t, std::string>> near;
  const size_t most = 1 + name.size() / 4;
  for (const std::string& k : known) {
    const size_t distance = edit_distance(lower(name), lower(k));
    if (distance <= most) near.emplace_back(distance, k);
  }
  std::sort(near.begin(), near.end());
  std::string s;
  for (size_t i = 0; i < std::min<size_t>(near.size(), 3); ++i) {
    s += (i == 0 ? "; did you mean '" : " or '") + near[i].second + "'";
  }
  return s.empty() ? s : s + "?";
}

}  // namespace berth::cli
