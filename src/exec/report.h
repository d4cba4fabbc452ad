// What a plan does, or did, as data: built from the plan and its record.
//
// Acts when somebody asks for a report, or when contracts are checked.
// Thread-safe.

#ifndef BERTH_EXEC_REPORT_H_
#define BERTH_EXEC_REPORT_H_

#include <span>

#include "berth/tensor.h"
#include "exec/plan.h"
#include "place/contracts.h"
#include "place/placed.h"

namespace berth {

// Returns how often each body of the plan has run, in a fixed order.
std::vector<int64_t> body_runs(Plan& plan);

// Returns what ran: devices, kernels, transfers and times from the record of
// the plan; requests and reasons from `placed`. With `next`, the arguments of
// a call, also what these would move. With `since`, what body_runs() was, only
// what ran since then counts, as one step. Estimates are left open. Waits for
// sampled runs that are on their way.
StepWork work_of(Plan& plan, const PlacedGraph& placed,
                 std::span<const Tensor* const> next = {},
                 const std::vector<int64_t>* since = nullptr);

}  // namespace berth

#endif  // BERTH_EXEC_REPORT_H_
