// Sets of intervals of time: sorted, disjoint. Pure.

#ifndef BERTH_PROFILER_INTERVALS_H_
#define BERTH_PROFILER_INTERVALS_H_

#include <vector>

namespace berth::profiler {

struct Interval {
  double begin = 0, end = 0;
  double us() const { return end - begin; }
};
using Intervals = std::vector<Interval>;

Intervals union_of(Intervals any);
Intervals intersection(const Intervals& a, const Intervals& b);
// What of `a` is not in `b`.
Intervals difference(const Intervals& a, const Intervals& b);
double measure(const Intervals& a);
// What of `a` lies in `within`.
Intervals clipped(const Intervals& a, Interval within);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_INTERVALS_H_
