// The first op whose bits differ between two runs that were recorded with
// checksums. Pure.

#ifndef BERTH_PROFILER_DIFF_RUNS_H_
#define BERTH_PROFILER_DIFF_RUNS_H_

#include <cstdint>
#include <string>

#include "berth/profiler.h"

namespace berth::profiler {

struct RunDifference {
  struct Side {
    bool is_there = false;  // the op ran in this run
    uint64_t checksum = 0;
    double least = 0, most = 0;  // least > most: it has no such numbers
  };
  bool found = false;
  std::string op;    // "dense/MatMul"; another result: "TopK:1"
  std::string line;  // "train.py:41"
  int64_t step = 0;  // which run of this op, from 1
  Side a, b;
  int64_t compared = 0;  // results with equal bits before it
  std::string str() const;
};

// Results are compared in the order of `a`, each run of an op with the same run
// of it in `b`; then those that only `b` has. Throws errors::InvalidArgument
// when a timeline has no checksums.
RunDifference first_difference(const Timeline& a, const Timeline& b);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_DIFF_RUNS_H_
