// What tasks agree on before they compute together: that a step is the same in
// all of them, its random numbers, and the values of variables.
//
// All tasks call these functions in the same order. One thread per link.

#ifndef BERTH_DISTRIBUTE_MULTI_WORKER_STEP_CONSENSUS_H_
#define BERTH_DISTRIBUTE_MULTI_WORKER_STEP_CONSENSUS_H_

#include <string>
#include <vector>

#include "distribute/multi_worker/gradient_exchange.h"
#include "graph/graph.h"

namespace berth::distribute {

// The texts of all ranks.
std::vector<std::string> gather_texts(CollectiveExecutor& link,
                                      const std::string& mine,
                                      const std::string& what);

// Equal for equal steps: covers their ops, shapes and attributes, but not names
// and random numbers.
uint64_t hash_of_step(const Graph& graph);

// Throws errors::InvalidArgument, the same in all tasks, naming those whose
// step differs from the chief's. Gives the random ops of the graph the chief's
// numbers, and variables that are new here the chief's values.
void agree_on_step(CollectiveExecutor& link, Graph& graph);

// Compares the functions of run(), which may differ between replicas: throws
// if replicas of two tasks meet at different places.
void agree_on_meetings(CollectiveExecutor& link, const Graph& trace);

// Agrees on variables only.
void agree_on_variables(CollectiveExecutor& link,
                        const std::vector<Tensor>& handles);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_MULTI_WORKER_STEP_CONSENSUS_H_
