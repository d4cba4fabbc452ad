// Strategy scopes and replica scopes: what the modules below distribute/ must
// know of them.
//
// StrategyScope stands while strategy.scope() is open, outside replicas;
// ReplicaScope while a replica's function is being traced by strategy.run().
// Both hang in ThreadState; distribute/ implements them. One thread.

#ifndef BERTH_OP_REPLICA_SCOPE_H_
#define BERTH_OP_REPLICA_SCOPE_H_

#include <string>

#include "berth/tensor.h"
#include "berth/variable.h"
#include "op/dispatcher.h"

namespace berth {

class StrategyScope {
 public:
  virtual ~StrategyScope() = default;
  virtual const std::string& name() const = 0;  // "MirroredStrategy"
  virtual int num_replicas() const = 0;
  // Where a variable made now lives (its home); `scope` is the innermost
  // device scope, null: none.
  virtual Device& home(const DeviceScope* scope) const = 0;
  // Called with each variable made in the scope.
  virtual void adopt(const Tensor& handle) const = 0;
  // Parts of a batch that do not wait for each other.
  virtual int micro_batches() const { return 1; }
  // The device ("/GPU:1" of a replica's) of a layer that is called; "": the
  // strategy does not choose it.
  virtual std::string device_of_layer(const char* /*path*/) const { return {}; }
};

class ReplicaScope {
 public:
  virtual ~ReplicaScope() = default;
  virtual StrategyScope& strategy() const = 0;
  virtual int id() const = 0;
  // Combines `value` of this replica with those of the others.
  virtual Tensor all_reduce(VariableAggregation how, const Tensor& value) = 0;
  // What a write of `value` to the variable writes: aggregated as the variable
  // says. Throws errors::InvalidArgument for VariableAggregation::kNone,
  // naming the call and the variable, unless the engine itself writes it
  // (Unaggregated).
  virtual Tensor to_write(const Tensor& handle, const Tensor& value,
                          const char* what) = 0;
  // Examples of this replica over those of all, for means of losses; a scalar.
  virtual double share() const = 0;
  // Notes that a mean of this replica divides by `all` values; 0: unknown.
  // Throws errors::InvalidArgument when that mean of replica 0 divides by
  // others: then share() is not that of these values.
  virtual void check_mean(double /*all*/) {}
};

// While it stands, writes of variables in a replica are not aggregated: the
// engine writes values that are equal in all replicas (optimizers).
class Unaggregated {
 public:
  Unaggregated() : saved_(active()) { active() = true; }
  ~Unaggregated() { active() = saved_; }
  Unaggregated(const Unaggregated&) = delete;
  Unaggregated& operator=(const Unaggregated&) = delete;
  static bool& active();

 private:
  const bool saved_;
};

}  // namespace berth

#endif  // BERTH_OP_REPLICA_SCOPE_H_
