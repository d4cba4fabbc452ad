// Outcome: what the placer, in this process or behind the command line, made
// of a case; and the comparison with what follows from the rules.

#ifndef BERTH_CONFORMANCE_PLACE_OUTCOME_H_
#define BERTH_CONFORMANCE_PLACE_OUTCOME_H_

#include <map>
#include <set>
#include <string>

#include "conformance/place/case.h"
#include "graph/graph.h"

namespace berth::conformance {

struct Outcome {
  std::string error;    // "InvalidArgument", ...; "": none
  std::string message;  // of the error
  std::map<std::string, std::string> devices;    // node -> "GPU:1"
  std::multiset<std::string> notes;              // "request-ignored read"
  std::map<std::string, std::string> fallbacks;  // node -> what it asked for
  std::multiset<std::string> edges;              // of a partitioned graph
};

// Places, and for kPartition partitions, the case's text in this process.
Outcome run_here(const PlaceCase& c, PlacePolicy policy);
// Does the same by the program `berth place`.
Outcome run_command_line(const PlaceCase& c, PlacePolicy policy);

// What Expected::edges lists, of a partitioned graph.
std::multiset<std::string> edges_of(const Graph& partitioned);
// Node -> "GPU:1" of a placed graph.
std::map<std::string, std::string> devices_of(const Graph& placed);

// Returns what is not as expected, one line each; "" when all is.
std::string difference(const PlaceCase& c, const Expected& expected,
                       const Outcome& got);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_PLACE_OUTCOME_H_
