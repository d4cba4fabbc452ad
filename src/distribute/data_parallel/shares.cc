#include "distribute/data_parallel/shares.h"

#include <cmath>

namespace berth::distribute {

std::vector<int64_t> even_parts(int64_t total, size_t parts) {
  const auto n = static_cast<int64_t>(parts);
  std::vector<int64_t> result;
  for (int64_t i = 0; i < n; ++i) {
    result.push_back(total / n + (i >= n - total % n ? 1 : 0));
  }
  return result;
}

std::vector<int> slices_by_weight(const std::vector<double>& weights,
                                  int slices) {
  double sum = 0;
  for (double w : weights) sum += w;
  std::vector<int> result(weights.size(), 0);
  int left = slices;
  const auto wants = [&](size_t i) { return weights[i] / sum * slices; };
  for (size_t i = 0; i < weights.size(); ++i) {
    result[i] = static_cast<int>(std::floor(wants(i)));
    if (result[i] == 0 && weights[i] > 0) result[i] = 1;
    left -= result[i];
  }
  // Add or take one at a time where the share is furthest from its ideal.
  for (; left != 0; left += left > 0 ? -1 : 1) {
    const int sign = left > 0 ? 1 : -1;
    size_t best = weights.size();
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] <= 0 || (sign < 0 && result[i] == 0)) continue;
      const auto missing = [&](size_t k) {
        return sign * (wants(k) - result[k]) -
               (sign < 0 && result[k] == 1 ? slices : 0);
      };
      if (best == weights.size() || missing(i) > missing(best)) best = i;
    }
    result[best] += sign;
  }
  return result;
}

}  // namespace berth::distribute
