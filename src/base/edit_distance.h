// edit_distance: how far a misspelt name is from a known one (Levenshtein).

#ifndef BERTH_BASE_EDIT_DISTANCE_H_
#define BERTH_BASE_EDIT_DISTANCE_H_

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <vector>

namespace berth {

// Returns how many letters must be put in, taken out or replaced to turn `a`
// into `b`. Pure.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t kept = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, kept});
    }
  }
  return row.back();
}

}  // namespace berth

#endif  // BERTH_BASE_EDIT_DISTANCE_H_
