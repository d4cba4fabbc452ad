// GraphRewrite: what a strategy does to the graph of a function.
//
// Acts when a function is compiled for known shapes: after the device-free
// passes, before placement. Thread-safe: const, but key() may change between
// calls.

#ifndef BERTH_FUNCTION_GRAPH_REWRITE_H_
#define BERTH_FUNCTION_GRAPH_REWRITE_H_

#include <cstdint>

#include "exec/plan.h"
#include "graph/graph.h"

namespace berth {

class GraphRewrite {
 public:
  virtual ~GraphRewrite() = default;

  // Rewrites an optimised graph whose shapes are all known. Device-free passes
  // run again afterwards. Throws errors::InvalidArgument,
  // errors::FailedPrecondition.
  virtual void apply(Graph& graph) const = 0;

  // Plans with different keys are different plans (for example after shares
  // have moved). Read once per call, so it must be cheap.
  virtual uint64_t key() const { return 0; }

  // Called when a plan of a rewritten graph has been made. Returns false if
  // apply() would now do something else (the plan needs too much memory); then
  // the function is compiled again, at most three times.
  virtual bool accept(const Plan& /*plan*/) const { return true; }

  // Called after each run of such a plan, on the thread that ran it. Must be
  // cheap; may change key().
  virtual void ran(Plan& /*plan*/) const {}

  // Parts per forked op in these plans; 0: as the function's options say.
  virtual int slices() const { return 0; }

  // Which ops of these plans are split.
  virtual SlicingRule slicing_rule() const { return {}; }

  // Whether devices run the nodes in the order of the graph.
  virtual bool in_order() const { return false; }

  // Runs of these plans end, or throw errors::DeadlineExceeded, within this
  // many seconds; 0: no limit.
  virtual double timeout_seconds() const { return 0; }
};

}  // namespace berth

#endif  // BERTH_FUNCTION_GRAPH_REWRITE_H_
