#include "profiler/intervals.h"

#include <algorithm>

namespace berth::profiler {

Intervals union_of(Intervals any) {
  const auto earlier = [](const Interval& a, const Interval& b) {
    return a.begin < b.begin;
  };
  if (!std::is_sorted(any.begin(), any.end(), earlier)) {
    std::sort(any.begin(), any.end(), earlier);
  }
  Intervals all;
  for (const Interval& i : any) {
    if (i.end <= i.begin) continue;
    if (!all.empty() && i.begin <= all.back().end) {
      all.back().end = std::max(all.back().end, i.end);
    } else {
      all.push_back(i);
    }
  }
  return all;
}

Intervals intersection(const Intervals& a, const Intervals& b) {
  Intervals both;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const double begin = std::max(a[i].begin, b[k].begin);
    const double end = std::min(a[i].end, b[k].end);
    if (begin < end) both.push_back({begin, end});
    (a[i].end < b[k].end ? i : k)++;
  }
  return both;
}

Intervals difference(const Intervals& a, const Intervals& b) {
  Intervals left;
  size_t k = 0;
  for (Interval i : a) {
    while (k < b.size() && b[k].end <= i.begin) ++k;
    for (size_t m = k; m < b.size() && b[m].begin < i.end; ++m) {
      if (b[m].begin > i.begin) left.push_back({i.begin, b[m].begin});
      i.begin = std::max(i.begin, b[m].end);
    }
    if (i.begin < i.end) left.push_back(i);
  }
  return left;
}

double measure(const Intervals& a) {
  double us = 0;
  for (const Interval& i : a) us += i.us();
  return us;
}

Intervals clipped(const Intervals& a, Interval within) {
  auto at = std::lower_bound(
      a.begin(), a.end(), within.begin,
      [](const Interval& i, double begin) { return i.end <= begin; });
  Intervals parts;
  for (; at != a.end() && at->begin < within.end; ++at) {
    parts.push_back(
        {std::max(at->begin, within.begin), std::min(at->end, within.end)});
  }
  return parts;
}

}  // namespace berth::profiler
