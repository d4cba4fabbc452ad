// placement: where things run, as data: contracts, reports, explanations.
//
// A Contract is a condition on the placement of a function, scope or model; it
// is checked on the plan before the first step and on each run. A Report shows
// what ran where. An Explanation shows why one op is where it is and what would
// move it. Values; thread-safe. A ContractScope belongs to its thread.

#ifndef BERTH_PLACEMENT_H_
#define BERTH_PLACEMENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "berth/site.h"

namespace berth::placement {

// At most `bytes` per step from devices that match `from` to devices that
// match `to` (partial device names; "" matches any).
struct TransferLimit {
  std::string from, to;
  int64_t bytes = 0;
};

// At most `bytes` at the peak on each device that matches `device`: arenas,
// outputs, arguments, constants and variables of the step.
struct MemoryLimit {
  std::string device;
  int64_t bytes = 0;
};

// Ops whose name is `op`, or lies under it ("dense" covers "dense/MatMul"),
// run on a device that matches `device`. A name that no op has is an error.
struct OpPlace {
  std::string op, device;
};

// A violation throws errors::FailedPrecondition that lists the offending
// edges, ops or buffers with bytes, devices and source lines, and the limit.
struct Contract {
  std::string name = "contract";  // for messages
  // Every op runs here, and only arguments and results cross the boundary.
  std::string stays_on = {};
  // No op runs elsewhere than requested, but for one that follows its variable
  // without moving anything.
  bool no_fallback = false;
  std::vector<TransferLimit> transfers = {};
  std::vector<MemoryLimit> peak_memory = {};
  std::vector<OpPlace> ops = {};

  bool empty() const {
    return stays_on.empty() && !no_fallback && transfers.empty() &&
           peak_memory.empty() && ops.empty();
  }
};

// One contract or several, for options:
//   .contract = placement::Contract{.stays_on = "/GPU:0"}
class Contracts {
 public:
  Contracts() = default;
  Contracts(Contract one) : list_{std::move(one)} {}  // NOLINT
  Contracts(std::vector<Contract> list)               // NOLINT
      : list_(std::move(list)) {}
  const std::vector<Contract>& list() const { return list_; }
  bool empty() const { return list_.empty(); }

 private:
  std::vector<Contract> list_;
};

struct ScopeState;  // op/contract_scope.h

// A block with a contract; see contract().
class [[nodiscard]] ContractScope {
 public:
  ContractScope(Contract contract, Site site);
  ~ContractScope();
  ContractScope(const ContractScope&) = delete;
  ContractScope& operator=(const ContractScope&) = delete;

  // Bytes moved between devices for eager ops and calls in this block.
  int64_t moved_bytes() const;
  // Throws errors::InvalidArgument if an entry of `ops` has not matched any op.
  void check() const;

 private:
  std::shared_ptr<ScopeState> state_;
};

// Opens a block whose ops keep `contract`, until the guard ends:
//   auto keep = placement::contract({.stays_on = "/GPU:0"});
// Ops traced inside are checked when their function is compiled and in each of
// its runs, wherever it is called. Eager ops and calls of functions are checked
// at each call, before they run; bytes add up over the block. Blocks nest: all
// open ones apply. Throws errors::InvalidArgument for malformed device names.
[[nodiscard]] inline ContractScope contract(Contract c,
                                            Site site = Site::here()) {
  return ContractScope(std::move(c), site);
}

// What one device did, per step.
struct DeviceRow {
  std::string device;  // full name
  int64_t ops = 0;
  double estimated_busy_us = -1;  // -1: not estimated
  double measured_busy_us = -1;   // -1: not measured
  int64_t peak_bytes = 0;         // the sum of these:
  int64_t arena_bytes = 0;
  int64_t output_bytes = 0;
  int64_t variable_bytes = 0;
  int64_t other_bytes = 0;  // arguments and constants
};

// One op of the compiled step. Regions run several at once; their time is
// assigned to the first.
struct OpRow {
  std::string op;      // node name; in bodies "While/body/MatMul"
  std::string type;    // "MatMul"
  std::string device;  // full name: where it ran
  std::string requested;
  std::string kernel;                // label of the kernel that ran
  double runs_per_step = 0;          // 0: has not run
  double measured_us = -1;           // of one run; -1: not measured
  std::vector<std::string> sources;  // names of the ops as written
  Site site = {};
  bool collective = false;  // combines values of replicas
};

// One value that goes to another device, per step.
struct TransferRow {
  std::string value;  // "dense/MatMul:0"
  std::string from, to;
  int64_t bytes = 0;         // of one transfer
  double runs_per_step = 0;  // more than 1 in loops; 0: has not run
  std::string cause;         // "read by \"loss/Sum\", asked for on \"/CPU:0\""
  std::vector<std::string> readers;  // ops on `to`
  double measured_us = -1;           // of one transfer; -1: not measured
  Site site = {};  // the device() line that asked, else that of the reader
  bool collective = false;  // a value of a replica, to be reduced
};

// An op that does not run where requested.
struct FallbackRow {
  std::string op;         // node name
  std::string requested;  // as asked for
  std::string device;     // where it runs
  std::string reason;     // "no kernel for int32 on GPU:0"
  int64_t bytes = 0;      // moved per step because of it, without arguments
  Site site = {};
};

// What ran, as recorded by the executor; requests and reasons come from the
// placer. Times are medians or means of sampled runs: the second to the fourth,
// then less and less often.
struct Report {
  std::string name;               // of the function or model
  int64_t steps = 0;              // run since it was compiled
  double estimated_step_us = -1;  // -1: not estimated
  double measured_step_us = -1;   // median; -1: not measured
  std::vector<DeviceRow> devices;
  std::vector<TransferRow> transfers;
  std::vector<FallbackRow> fallbacks;
  // Ops whose requested and actual device differ for a reason other than a
  // missing kernel or device (a variable decided, a colocation).
  std::vector<FallbackRow> moved;
  std::vector<OpRow> ops;
  // The planner's guarantee, in one sentence (docs/planner.md); "" if rules
  // placed the step.
  std::string plan;
  // What most of a step is that can be avoided, a sentence each: Python on the
  // host, loops of tiny ops, reading a value after every step, waiting for
  // input in fit.
  std::vector<std::string> verdicts;

  // Bytes per step between matching devices; "" matches any.
  int64_t transfer_bytes(const std::string& from = "",
                         const std::string& to = "") const;
  int64_t fallback_bytes() const;
  // The largest peak of the devices that match; "" matches any.
  int64_t peak_bytes(const std::string& device = "") const;
  // The device of the op with this name, as compiled or as written; "": none.
  std::string device_of(const std::string& op) const;

  // Readable tables: devices, transfers, fallbacks, the ten most expensive ops.
  std::string str() const;
  // The table of devices, and a line each for transfers and fallbacks.
  std::string brief() const;
  // One line: "fallbacks: 2 ops, 1.2 MiB per step"; "" if all is as requested.
  std::string summary() const;
  // docs/json.md, "placement".
  std::string json() const;
};

// A step of the reasoning, from the op to the deciding cause.
struct Because {
  std::string text;  // "reads variable \"w\", which lives on GPU:1"
  Site site = {};
};

struct Alternative {
  std::string device;
  bool possible = false;
  std::string why_not;      // for an impossible one: what forbids it
  double step_us = -1;      // of the whole step with the op there; -1: unknown
  double delta_us = 0;      // relative to the step as placed
  int64_t delta_bytes = 0;  // sent between devices per step
};

// What would have to change for the op to run on `device`: edits of the
// program, all of them together.
struct Change {
  enum class Kind : uint8_t {
    kRequest,          // request `to` at op
    kWithdrawRequest,  // remove the request of op
    kWithdrawGroup,    // remove op from colocation group `to`
    kMoveVariable,     // create variable op on `to`
    kAddKernel,        // give device type `to` a kernel of op
  };
  Kind kind;
  std::string op;  // node name
  std::string to;
  Site site = {};
};
struct Move {
  std::string device;
  std::vector<Change> changes;
};

struct Explanation {
  std::string op;      // node name
  std::string device;  // full name
  std::string rule;    // "request", "variable", "colocation", "consumers", ...
  std::vector<Because> chain;  // starting with what decided for the op itself
  std::vector<Alternative> alternatives;  // one per other device
  std::vector<Move> moves;                // for the possible ones
  // Measured relative error of such estimates; negative: never measured.
  double estimate_error = -1;

  std::string str() const;
  std::string json() const;  // docs/json.md, "explanation"
};

// Prints one change as an instruction: `ask for "/GPU:1" at "dense/MatMul"
// (model.cc:41)`.
std::string to_string(const Change& change);

}  // namespace berth::placement

#endif  // BERTH_PLACEMENT_H_
