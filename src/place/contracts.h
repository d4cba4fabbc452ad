// Checks contracts against what a compiled step does.
//
// Acts on the work of a step as the executor describes it, before the first run
// and after runs. Pure; thread-safe.

#ifndef BERTH_PLACE_CONTRACTS_H_
#define BERTH_PLACE_CONTRACTS_H_

#include <string>
#include <vector>

#include "berth/placement.h"
#include "op/contract_scope.h"

namespace berth {

// What a compiled step does, or did: its report, and data for contracts.
struct StepWork {
  placement::Report report;
  // Ops that share a row of report.ops which does not name them all, because
  // many were fused into one op. They are numbered after the rows.
  std::vector<placement::OpRow> more_ops;
  // By op: the contracts that were open where its sources were traced.
  std::vector<std::vector<ContractChainRef>> contracts;

  size_t num_ops() const { return report.ops.size() + more_ops.size(); }
  const placement::OpRow& op(size_t i) const {
    return i < report.ops.size() ? report.ops[i]
                                 : more_ops[i - report.ops.size()];
  }
  // By report.transfers: the reader and the producer, in report.ops.
  struct Edge {
    std::vector<int32_t> readers;
    int32_t producer = -1;  // -1: an argument or constant
    bool argument = false;  // of the step
    bool nested = false;    // in a body
    bool maybe = false;     // in a branch that may not be taken
  };
  std::vector<Edge> edges;
  // The holders of memory at the peak, largest first.
  struct Holder {
    std::string device, what;
    int64_t bytes = 0;
    Site site = {};
  };
  std::vector<Holder> holders;
};

// Throws errors::FailedPrecondition when `work` breaks the contract: its ops
// where `covered` (by number; empty: all), the transfers that they read, and
// the memory of the step. Before the first run every part counts as run once.
// `what`: "function \"step\"".
void check_contract(const ParsedContract& contract, Site made,
                    const std::string& what, const StepWork& work,
                    const std::vector<bool>& covered = {});

// Throws errors::InvalidArgument, with the nearest names, when an entry of
// `ops` matches nothing in `names`.
void check_names(const ParsedContract& contract, Site made,
                 const std::string& what,
                 const std::vector<std::string>& names);

// Checks all contracts that were open when ops of `work` were traced.
void check_scopes(const std::string& what, const StepWork& work);

// Returns up to three of `names` that are most similar to `name`.
std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names);

}  // namespace berth

#endif  // BERTH_PLACE_CONTRACTS_H_
