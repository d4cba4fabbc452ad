// GraphRewrite: what a strategy does to the graph of a function.
//
// Acts when a function is compiled for known shapes: after the device-free
// passes, before placement. Thread-safe: const, and key() may change between
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

  // Plans of different keys are different plans (shares that have moved). Read
  // once per call: must be cheap.
  virtual uint64_t key() const { return 0; }

  // Called when a plan of a rewritten graph is made. False: apply() would do
  // something else now (the plan needs too much memory), and the function is
  // compiled again; asked three times at most.
  virtual bool accept(const Plan& /*plan*/) const { return true; }

  // Called after each run of such a plan, on the thread that ran it. Must be
  // cheap; key() may be another afterwards.
  virtual void ran(Plan& /*plan*/) const {}

  // Parts of forked work in these plans; 0: as the options of the function say.
  virtual int slices() const { return 0; }

  // Which ops of these plans are cut.
  virtual CutRule cut_rule() const { return {}; }

  // Runs of these plans end, or throw errors::DeadlineExceeded, within so many
  // seconds; 0: no limit.
  virtual double timeout_seconds() const { return 0; }
};

}  // namespace berth

#endif  // BERTH_FUNCTION_GRAPH_REWRITE_H_
