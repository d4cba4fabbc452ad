// The placement contracts that are open on a thread, and their eager check.
//
// Tracers note the chain of open contracts with every node (NodeSource), so
// that it reaches the compiled step. A chain is immutable; the counters of a
// scope are guarded by its mutex.

#ifndef BERTH_OP_CONTRACT_SCOPE_H_
#define BERTH_OP_CONTRACT_SCOPE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "berth/placement.h"
#include "device/device_name.h"
#include "op/dispatcher.h"
#include "op/infer.h"

namespace berth {

// A contract with its device names parsed. Throws errors::InvalidArgument,
// naming contract and field, for a malformed name or a negative limit.
struct ParsedContract {
  explicit ParsedContract(placement::Contract contract);

  placement::Contract contract;
  DeviceName stays_on;
  struct Link {
    DeviceName from, to;
  };
  std::vector<Link> transfers;
  std::vector<DeviceName> memory, ops;
};

// True when op `name` is `pattern` or lies under it.
bool names_op(const std::string& pattern, const std::string& name);

// Throws errors::FailedPrecondition: contract, where it was made, `what` broke
// it, and one line per offender.
[[noreturn]] void raise_broken(const placement::Contract& contract, Site made,
                               const std::string& what,
                               const std::vector<std::string>& offenders);

namespace placement {

struct ScopeState {
  ScopeState(Contract c, Site s)
      : parsed(std::move(c)),
        site(s),
        sent(parsed.transfers.size()),
        met(parsed.ops.size()) {}
  const ParsedContract parsed;
  const Site site;
  std::mutex mutex;           // what follows
  std::vector<int64_t> sent;  // bytes so far, per limit
  std::vector<bool> met;      // entries of `ops` that met an op
  int64_t moved_bytes = 0;
};

}  // namespace placement

// The open contracts, innermost first.
struct ContractChain {
  std::shared_ptr<placement::ScopeState> scope;
  std::shared_ptr<const ContractChain> outer;
};
using ContractChainRef = std::shared_ptr<const ContractChain>;

// A bit of ThreadState::flags: the chain is not empty.
inline constexpr uint32_t kContractsOpen = 1;
inline bool contracts_open() { return (t_state.flags & kContractsOpen) != 0; }

// Those of the calling thread; null: none.
ContractChainRef open_contracts();

// Returns the contracts of both.
ContractChainRef joined(const ContractChainRef& inner,
                        const ContractChainRef& outer);

// Puts `chain` in the place of the open contracts until the end of the block.
class ContractsSwap {
 public:
  explicit ContractsSwap(ContractChainRef chain);
  ~ContractsSwap();
  ContractsSwap(const ContractsSwap&) = delete;
  ContractsSwap& operator=(const ContractsSwap&) = delete;

 private:
  ContractChainRef saved_;
};

// Where an eager call runs; small integers that only tell shapes are computed
// on the host for any device.
struct CallPlace {
  const Device& device;
  Device& memory;  // where its operands and results are
};

// Checks an eager call that is about to run against the open contracts and
// counts what it moves. Throws errors::FailedPrecondition.
void check_eager_call(const OpDef& op, CallPlace place,
                      std::span<const Tensor* const> in,
                      std::span<const OutSpec> out);

}  // namespace berth

#endif  // BERTH_OP_CONTRACT_SCOPE_H_
