// What an _AllReduce node asks for, with the devices that it is about.
//
// Made by lower_collectives(), read by the algorithms that lower it. Values.

#ifndef BERTH_COLLECTIVE_REDUCTION_H_
#define BERTH_COLLECTIVE_REDUCTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace berth {

// A value that is to be added.
struct Piece {
  ValueRef value;
  int owner = 0;       // the replica that has it
  int64_t start = -1;  // its first slice; -1: no order is asked for
  int64_t end = -1;    // where the next piece of all begins; INT64_MAX: none
  DeviceId device;     // full name, "" when nobody says
};

// Somebody who wants the sum.
struct Result {
  int output = 0;   // of the _AllReduce node
  int replica = 0;  // that asked
  DeviceId device;
};

struct Reduction {
  int32_t node = -1;  // the _AllReduce
  std::vector<Piece> pieces;
  std::vector<Result> results;  // those with readers
};

// Reductions of one kind that are done together: same owners, devices, dtype.
struct Bucket {
  std::vector<Reduction> items;
  bool mean = false;
  int owners = 1;  // replicas that have pieces: a mean divides by it
  std::string algorithm;
  DType dtype = float32;
  double timeout_seconds = 0;  // of the step; 0: none
};

}  // namespace berth

#endif  // BERTH_COLLECTIVE_REDUCTION_H_
