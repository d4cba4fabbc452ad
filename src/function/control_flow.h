// Parts shared by tracing and differentiating control flow. One thread.

#ifndef BERTH_FUNCTION_CONTROL_FLOW_H_
#define BERTH_FUNCTION_CONTROL_FLOW_H_

#include <initializer_list>
#include <memory>

#include "graph/graph.h"
#include "op/callable.h"
#include "op/dispatcher.h"

namespace berth {

class Tracer;

// The innermost trace of the calling thread; null: none.
const Tracer* current_tracer();

// A block in which a separate graph is traced: the caller's tapes and traces
// see nothing of it; device scopes stay open.
class BodyTrace {
 public:
  BodyTrace();
  ~BodyTrace();
  BodyTrace(const BodyTrace&) = delete;
  BodyTrace& operator=(const BodyTrace&) = delete;

 private:
  const ThreadState saved_;
  const DispatchGuard outside_;
};

std::shared_ptr<Callable> make_callee(Graph graph);

// Appends the handles of all variables that the bodies use.
void add_handles(Tensors& inputs, std::initializer_list<const Graph*> bodies);

}  // namespace berth

#endif  // BERTH_FUNCTION_CONTROL_FLOW_H_
