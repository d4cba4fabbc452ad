// Reads of variables inside a plan share the variable's storage.
//
// That is right only while nobody writes it: pin_reads() makes every reader of
// the value run before the next write, and where program order has a reader
// after the write, or the value leaves the plan, it inserts a copy.

#ifndef BERTH_EXEC_VARIABLE_READS_H_
#define BERTH_EXEC_VARIABLE_READS_H_

#include "graph/graph.h"

namespace berth {

void pin_reads(Graph& graph);

// Puts writes of variables after ops that may refuse the values they get, such
// as labels and indices, where these do not need a write: what fails then has
// changed nothing.
void write_after_checks(Graph& graph);

}  // namespace berth

#endif  // BERTH_EXEC_VARIABLE_READS_H_
