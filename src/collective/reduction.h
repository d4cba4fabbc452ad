// AllReduceRequest: what an _AllReduce node asks for, with its devices.
//
// Made by lower_collectives(), read by the algorithms that lower it. Values.

#ifndef BERTH_COLLECTIVE_REDUCTION_H_
#define BERTH_COLLECTIVE_REDUCTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace berth {

// A value to be added.
struct Addend {
  ValueRef value;
  int owner = 0;       // the replica that has it
  int64_t start = -1;  // its first slice; -1: no order is required
  int64_t end = -1;    // start of the next piece of any owner; INT64_MAX: none
  DeviceId device;     // full name; "" if unknown
};

// A reader of the sum.
struct SumReader {
  int output = 0;   // of the _AllReduce node
  int replica = 0;  // that wants it
  DeviceId device;
};

struct AllReduceRequest {
  int32_t node = -1;  // the _AllReduce
  std::vector<Addend> pieces;
  std::vector<SumReader> results;  // those with readers
};

// Reductions of one kind that are done together: same owners, devices, dtype.
struct Bucket {
  std::vector<AllReduceRequest> items;
  bool mean = false;
  int owners = 1;  // replicas with pieces: the divisor of a mean
  std::string algorithm;
  DType dtype = float32;
  double timeout_seconds = 0;  // of the step; 0: none
};

}  // namespace berth

#endif  // BERTH_COLLECTIVE_REDUCTION_H_
