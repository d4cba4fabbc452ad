// StrategyCore: what a Strategy handle shares: its replicas and options.
//
// Immutable but for the shares, which fit moves between steps. Thread-safe.

#ifndef BERTH_DISTRIBUTE_STRATEGY_CORE_H_
#define BERTH_DISTRIBUTE_STRATEGY_CORE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "berth/distribute.h"
#include "device/device.h"
#include "distribute/split_batch.h"
#include "op/replica_scope.h"

namespace berth::distribute {

enum class StrategyKind : uint8_t {
  kOneDevice,
  kMirrored,
  kCentralStorage,
  kParameterServer,
};

class ParameterServers;  // distribute/parameter_servers.h

class StrategyCore final : public StrategyScope,
                           public std::enable_shared_from_this<StrategyCore> {
 public:
  // Throws errors::InvalidArgument: unknown or repeated devices, shares or
  // slices that do not fit; `site` is the user's line.
  StrategyCore(StrategyKind kind, StrategyOptions options, Site site);

  StrategyKind kind() const { return kind_; }
  // A number that no other strategy of the process has or had.
  uint64_t serial() const { return serial_; }
  const StrategyOptions& options() const { return options_; }
  const std::string& name() const override { return name_; }
  int num_replicas() const override {
    return static_cast<int>(replicas_.size());
  }
  // By replica: its devices.
  const std::vector<std::vector<Device*>>& replicas() const {
    return replicas_;
  }
  Device& home(const DeviceScope* scope) const override;
  void adopt(const Tensor& handle) const override;

  // Slices that batches are cut into: the option, else 32 for unequal or
  // automatic shares, else 0.
  int slices() const { return slices_; }
  // How many of slices() each replica has now; empty when slices() is 0.
  std::vector<int> shares() const;
  // Moves slices; later steps use other plans. Throws errors::InvalidArgument
  // unless the sum is slices().
  void set_shares(std::vector<int> shares);
  // Changes with each set_shares() to shares that are new; the same shares
  // have the same key.
  uint64_t shares_key() const { return key_.load(); }
  // Examples per replica of a batch.
  std::vector<int64_t> examples(int64_t batch) const;
  // The same as a description for the rewrite of a step.
  SplitPlan split_plan() const;

  // Who has the variables and runs the steps; null: this process. Throws
  // errors::FailedPrecondition when a ParameterServerStrategy has ended.
  std::shared_ptr<ParameterServers> servers() const;
  void set_servers(const std::shared_ptr<ParameterServers>& servers) {
    servers_ = servers;
  }

 private:
  const uint64_t serial_;
  StrategyKind kind_;
  StrategyOptions options_;
  std::string name_;
  std::vector<std::vector<Device*>> replicas_;
  int slices_ = 0;
  mutable std::mutex mutex_;
  std::vector<int> shares_;
  std::atomic<uint64_t> key_{0};
  std::weak_ptr<ParameterServers> servers_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_CORE_H_
