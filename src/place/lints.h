// Lints of a placed graph: requests that were met and cost more than they save.
//
// Acts once per compiled graph, between placing and partitioning. Pure; one
// thread per graph. The ids are explained in docs/diagnostics.md.

#ifndef BERTH_PLACE_LINTS_H_
#define BERTH_PLACE_LINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "place/place.h"

namespace berth {

// Savings below this many bytes per step are not worth a report.
inline constexpr int64_t kLintBytes = 64 << 10;

// What would have been better. Bytes are those sent between devices per step
// because of these ops.
struct PlaceLint {
  std::string id;     // "reduce-placement", "ping-pong", ...
  int32_t node = -1;  // the op, or the read of the variable
  DeviceId device;    // where it would cost less, full name
  int64_t bytes = 0;  // as placed
  int64_t bytes_there = 0;
  std::string text;  // one sentence, with what to do
};

// Returns the findings for a graph whose nodes are all assigned, before
// partition(). Judges ops that run where they were requested, their gradients,
// and ops that nobody placed.
//   reduce-placement    gives far less than it reads from another device
//   expand-placement    gives far more to another device than it reads
//   ping-pong           stands alone between ops of another device
//   variable-elsewhere  a variable that only other devices read
//   gradient-elsewhere  gradients pinned away from their forward ops
//   kernel-missing      not requested, and not on the device of its neighbours
std::vector<PlaceLint> lint_placement(const Graph& graph,
                                      const PlaceOptions& options);

}  // namespace berth

#endif  // BERTH_PLACE_LINTS_H_
