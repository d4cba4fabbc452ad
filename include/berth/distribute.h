// distribute: one model on many devices, equal or not, with the same result
// (tf.distribute).
//
//   distribute::MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
//   {
//     auto scope = strategy.scope();
//     model = make_model();
//     model.compile({.optimizer = "adam", .loss = "mse"});
//   }
//   model.fit(x, y, {.batch_size = 256});  // the batch is global
//
// A Strategy is a value handle. There are two meanings of replication.
// fit, evaluate and predict split the step on the global batch by the split
// rules of its ops: any shares give what one device gives. run() traces a
// function once per replica with TensorFlow's replica semantics: what is
// computed in it is local until reduced. Scopes belong to their thread; one
// thread runs steps of a strategy at a time.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_DISTRIBUTE_H_
#define BERTH_DISTRIBUTE_H_

#include <any>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/data.h"
#include "berth/function.h"
#include "berth/site.h"
#include "berth/tensor.h"
#include "berth/tree.h"
#include "berth/variable.h"

namespace berth::distribute {

class StrategyCore;  // distribute/strategy/strategy_core.h

enum class ReduceOp : uint8_t { kSum, kMean };
using VariableSynchronization = berth::VariableSynchronization;
using VariableAggregation = berth::VariableAggregation;

// One value per replica, each on its replica's device
// (tf.distribute.DistributedValues). In a trace the values are symbolic.
class PerReplica {
 public:
  PerReplica() = default;
  explicit PerReplica(Tensors values) : values_(std::move(values)) {}
  // Values of replicas with an empty share of a batch have 0 examples.
  const Tensors& values() const { return values_; }
  size_t size() const { return values_.size(); }
  const Tensor& operator[](size_t replica) const { return values_.at(replica); }

 private:
  friend struct berth::Tree<PerReplica>;
  Tensors values_;
};

// How copies of gradients are added (tf.distribute.CrossDeviceOps). Between CPU
// devices, which share memory, all are the same: each device adds and updates
// its own part.
enum class CrossDeviceOps : uint8_t {
  kAuto,
  kRing,                       // CollectiveAllReduce
  kHierarchicalCopyAllReduce,  // within pairs, between pairs, back
  kReductionToOneDevice,
  kDirect,  // each device adds its part of the elements
  // By NCCL, if devices are distinct NVIDIA cards and it is installed;
  // otherwise as kAuto, which chooses NCCL in that case unless `slices`
  // requires bits that do not depend on the devices.
  kNcclAllReduce,
};

// tf.distribute.experimental.CommunicationOptions.
struct CommunicationOptions {
  // Gradients are sent in packs of this many bytes, in the order in which they
  // appear; 0: 4 MiB, of which small models fill one.
  int64_t bytes_per_pack = 0;
  // A step that takes longer throws errors::DeadlineExceeded, naming the
  // missing tasks; 0: no limit.
  double timeout_seconds = 0;
};

// Parts of the global batch per replica.
struct AutoShares {};
inline constexpr AutoShares Auto{};
class Shares {
 public:
  Shares() = default;                       // equal
  Shares(AutoShares) : automatic_(true) {}  // NOLINT: .shares = Auto
  Shares(std::initializer_list<double> w) : weights_(w) {}   // one per replica
  Shares(std::vector<double> w) : weights_(std::move(w)) {}  // NOLINT
  bool automatic() const { return automatic_; }
  bool equal() const { return !automatic_ && weights_.empty(); }
  const std::vector<double>& weights() const { return weights_; }

 private:
  bool automatic_ = false;
  std::vector<double> weights_;
};

// What of a training step is divided over the memories of the replicas (ZeRO;
// FSDP), instead of being whole in each. Devices of one memory, such as CPU
// devices, have everything once anyway.
enum class Sharding : uint8_t {
  kNone,
  // The optimizer's variables. Gradients are summed after the backward pass,
  // each device its part of the elements (ZeRO 1).
  kOptimizer,
  // Also gradients: they are summed as soon as they are made, and a device
  // keeps its part of the sums (ZeRO 2; FSDP's SHARD_GRAD_OP).
  kGradients,
  // Also trainable variables: they are gathered before they are used, one
  // layer ahead, and released (ZeRO 3; FSDP's FULL_SHARD).
  kParameters,
};

struct StrategyOptions {
  // Device names: "/GPU:0", "GPU:0", "/physical_device:GPU:0" or a full name,
  // each once. Empty: all GPUs, else all CPU devices.
  std::vector<std::string> devices = {};
  CrossDeviceOps cross_device_ops = CrossDeviceOps::kAuto;
  CommunicationOptions communication = {};
  // Devices of one replica, in the order of `devices`; scopes in the model then
  // refer to them by their number within the replica ("/GPU:1").
  int devices_per_replica = 1;
  Shares shares = {};
  // Parts that a batch is split into: results then have the same bits on any
  // number of devices of one kind. 0: the number of cores; 32 if shares are
  // unequal or automatic.
  int slices = 0;
  // Divides optimizer state, gradients and variables. fit, evaluate and predict
  // then give the results of one device as without it; run() throws
  // errors::Unimplemented. MirroredStrategy alone has it.
  Sharding sharding = Sharding::kNone;
};

// The argument of functions that make datasets (tf.distribute.InputContext).
struct InputContext {
  int num_replicas_in_sync = 1;
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;
  // Throws errors::InvalidArgument unless it divides evenly.
  int64_t get_per_replica_batch_size(int64_t global_batch_size) const;
};

// Batches split into one part per replica: elements are lists of PerReplica.
class DistributedDataset {
 public:
  struct State;
  explicit DistributedDataset(std::shared_ptr<State> state)
      : state_(std::move(state)) {}

  class Iterator {
   public:
    // Returns the next batch, nullopt at the end.
    std::optional<std::vector<PerReplica>> next();

   private:
    friend class DistributedDataset;
    struct Impl;
    std::shared_ptr<Impl> impl_;
  };
  Iterator make_iterator() const;
  int64_t cardinality() const;
  // Whether each of several tasks reads examples that the others do not.
  bool of_each_task() const;

  // for (const std::vector<PerReplica>& batch : dataset)
  class Cursor {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::vector<PerReplica>;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;
    reference operator*() const { return *batch_; }
    Cursor& operator++() {
      batch_ = it_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    friend class DistributedDataset;
    std::shared_ptr<Iterator> it_;
    std::optional<value_type> batch_;
  };
  Cursor begin() const;
  std::default_sentinel_t end() const { return {}; }

 private:
  std::shared_ptr<State> state_;
};

// A prediction of what a strategy does with one training step.
struct StrategyPlan {
  struct ReplicaShare {
    int replica = 0;
    std::vector<std::string> devices;
    int64_t examples = 0;  // of a full batch
    int slices = 0;        // 0: not split into slices
    double compute_us = 0;
    int64_t peak_bytes = 0;
  };
  struct Bucket {
    std::vector<std::string> variables;
    int64_t bytes = 0;
    std::string algorithm;  // "shared memory", "direct", "ring", ...
  };
  // What a task sends to the next one in a step; sums go around a ring.
  struct Link {
    std::string from, to;  // "worker:0"
    int64_t bytes = 0;
    double us = 0;          // of all of it
    bool measured = false;  // by `berth calibrate --cluster`
  };
  struct TaskCount {
    int tasks = 0;
    double step_us = 0;
  };
  // A stage of a PipelineStrategy. Times are of one micro-batch.
  struct Stage {
    std::string device;               // full name
    std::vector<std::string> layers;  // in the order of the model
    double forward_us = 0, backward_us = 0;
  };
  struct PipelinePlan {
    std::string schedule;  // "1f1b"
    int micro_batches = 0;
    std::vector<Stage> stages;
    std::string instructions;         // a line per device
    std::vector<int> in_flight;       // by device: micro-batches held at most
    std::vector<int64_t> peak_bytes;  // by device
    // Share of the devices' time spent waiting: as predicted, by these times
    // alone (without copies and updates), and of equal stages.
    double bubble = 0, bubble_of_stages = 0, bubble_of_equal_stages = 0;
    // The step as a picture: a row per device, a box per instruction, as long
    // as its stage takes; equally long if times are not known.
    std::string svg() const;
  };
  // A device whose memory limit is below what the step holds at its peak.
  struct TooSmall {
    std::string device;  // full name
    int64_t peak_bytes = 0;
    int64_t limit_bytes = 0;
  };
  std::string strategy;
  int64_t batch = 0;
  std::vector<ReplicaShare> replicas;
  std::optional<PipelinePlan> pipeline;
  std::vector<TooSmall> too_small;  // empty: the batch fits
  // The largest batch that fits, where this one does not; 0: none does.
  int64_t largest_batch = 0;
  std::vector<Bucket> buckets;
  std::vector<std::string> unused;  // variables without a gradient
  std::vector<std::string> whole;   // ops without a split rule: run whole
  int64_t bytes_per_step = 0;       // between devices
  double step_us = 0, one_device_us = 0, all_reduce_us = 0;
  // For several tasks; their sums are in step_us and not in all_reduce_us.
  std::vector<Link> links;
  double exchange_us = 0;  // of all sums between tasks
  bool exchange_measured = false;
  std::vector<TaskCount> task_counts;  // the step with so many tasks
  std::string one_device;              // the reference of the speed-up
  std::string advice;  // empty, why there is no gain, or whether more tasks pay
  double speed_up() const { return step_us > 0 ? one_device_us / step_us : 0; }
  std::string str() const;   // a table for people
  std::string json() const;  // docs/json.md
};

// Closes the scope of a strategy.
class [[nodiscard]] StrategyGuard {
 public:
  StrategyGuard(std::shared_ptr<StrategyCore> core, Site site);
  ~StrategyGuard();
  StrategyGuard(const StrategyGuard&) = delete;
  StrategyGuard& operator=(const StrategyGuard&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The type-free part of run(): lists of tensors per replica and back.
struct ReplicaCall {
  std::vector<Tensors> args;  // by replica, equally many
  std::string fixed;          // signature text of the other arguments
  // The argument whose first axis counts the examples of a replica; -1: none.
  int split = -1;
  // Calls the function in a replica, with symbolic tensors for its args; keeps
  // the structure of the result.
  std::function<Tensors(int replica, const Tensors& args, std::any* structure)>
      fn;
  FunctionCore* traces = nullptr;         // keeps the traces; null: not kept
  std::atomic<int>* num_calls = nullptr;  // for a function without traces
};
// Returns the results by replica, and their structure.
std::vector<Tensors> run_replicas(const std::shared_ptr<StrategyCore>& core,
                                  const ReplicaCall& call,
                                  std::shared_ptr<const std::any>* structure);

class Strategy {
 public:
  explicit Strategy(std::shared_ptr<StrategyCore> core)
      : core_(std::move(core)) {}

  // Variables made while the guard lives belong to the strategy: one copy per
  // memory, changed together. compile() in it makes fit use the strategy.
  StrategyGuard scope(Site site = Site::here()) const {
    return StrategyGuard(core_, site);
  }
  const std::string& name() const;
  int num_replicas_in_sync() const;
  // Full names, one list per replica.
  std::vector<std::vector<std::string>> devices() const;
  // Examples of each replica of a batch, by the current shares.
  std::vector<int64_t> examples(int64_t batch) const;

  // Calls fn in every replica. PerReplica arguments, also inside vectors, pairs
  // and tuples, give each replica its own tensor; all other arguments are the
  // same for all. In the result, each Tensor becomes a PerReplica. A Function
  // is traced once per signature; another callable at each call. Inside a
  // traced function the replicas become part of it. Throws
  // errors::InvalidArgument for values with another number of replicas and for
  // variables made inside, errors::FailedPrecondition inside run().
  template <class F, class... Args>
  auto run(F&& fn, const Args&... args) const;

  // Combines values over replicas and, with an axis, over that axis of each
  // (kMean then divides by the elements of all). Throws
  // errors::InvalidArgument.
  Tensor reduce(ReduceOp op, const PerReplica& value,
                std::optional<int64_t> axis = std::nullopt,
                Site site = Site::here()) const;
  Tensor reduce(ReduceOp op, const Tensor& value,
                std::optional<int64_t> axis = std::nullopt,
                Site site = Site::here()) const;
  // Concatenates along `axis`.
  Tensor gather(const PerReplica& value, int64_t axis,
                Site site = Site::here()) const;
  Tensors local_results(const PerReplica& value) const;
  Tensors experimental_local_results(const PerReplica& value) const {
    return local_results(value);
  }

  // Splits the batches of a dataset: its batch size is global.
  DistributedDataset experimental_distribute_dataset(
      const data::Dataset& dataset, Site site = Site::here()) const;
  // The function makes batches for one replica; each replica takes one.
  DistributedDataset distribute_datasets_from_function(
      const std::function<data::Dataset(const InputContext&)>& fn,
      Site site = Site::here()) const;

  // In the function of merge_call(): calls fn(variable's copy, values) on the
  // devices of the variable.
  void update(const Variable& v, const std::function<void(Tensor)>& fn,
              const Tensor& value) const;

  // Predicts a training step of a compiled model; runs nothing.
  template <class Model>
  StrategyPlan plan(const Model& model, int64_t batch_size,
                    Site site = Site::here()) const {
    return model.strategy_plan(*this, batch_size, site);
  }

  const std::shared_ptr<StrategyCore>& core() const { return core_; }

 private:
  template <class F, class... Args>
  auto run_in_replicas(F& fn, const Args&... args) const;

  std::shared_ptr<StrategyCore> core_;
};

// All replicas compute, each with copies of the variables.
struct MirroredStrategy : Strategy {
  explicit MirroredStrategy(StrategyOptions options = {},
                            Site site = Site::here());
  explicit MirroredStrategy(std::initializer_list<std::string> devices,
                            StrategyOptions options = {},
                            Site site = Site::here());
  // MirroredStrategy(names) is MirroredStrategy({.devices = names}).
  explicit MirroredStrategy(std::vector<std::string> devices,
                            StrategyOptions options, Site site = Site::here())
      : MirroredStrategy(
            with_devices(std::move(devices), std::move(options), site), site) {}

 private:
  static StrategyOptions with_devices(std::vector<std::string> devices,
                                      StrategyOptions options, Site site);
};
// Everything on one device.
struct OneDeviceStrategy : Strategy {
  explicit OneDeviceStrategy(const std::string& device,
                             Site site = Site::here());
};
// Variables live on the host, or on the device if there is only one; all
// devices compute.
struct CentralStorageStrategy : Strategy {
  explicit CentralStorageStrategy(StrategyOptions options = {},
                                  Site site = Site::here());
};

// Queries and reductions for a function in run().
class ReplicaContext {
 public:
  // A plain number, where TensorFlow has a scalar int32: each replica is
  // traced.
  int replica_id_in_sync_group() const;
  int num_replicas_in_sync() const;
  Strategy strategy() const;
  // The sum or mean over replicas; differentiable.
  Tensor all_reduce(ReduceOp op, const Tensor& value,
                    Site site = Site::here()) const;
  Tensors all_reduce(ReduceOp op, const Tensors& values,
                     Site site = Site::here()) const;
  // Concatenates over replicas along `axis`.
  Tensor all_gather(const Tensor& value, int64_t axis,
                    Site site = Site::here()) const;
  // Calls fn once for all replicas, with the values of each; every replica gets
  // the result. Throws errors::InvalidArgument if replicas call merge_call in
  // different order.
  Tensors merge_call(const std::function<Tensors(
                         const Strategy&, const std::vector<PerReplica>&)>& fn,
                     const Tensors& args, Site site = Site::here()) const;
};

// Null outside of run().
std::optional<ReplicaContext> get_replica_context();
// The strategy whose scope or run() is open; if there is none,
// OneDeviceStrategy of the default device.
Strategy get_strategy();
bool has_strategy();
bool in_cross_replica_context();

}  // namespace berth::distribute

namespace berth {
template <>
struct Tree<distribute::PerReplica> {
  static void visit(distribute::PerReplica& p, TreeVisitor& v) {
    visit_tree(p.values_, v);
  }
};
}  // namespace berth

#include "berth/distribute_run.h"

#endif  // BERTH_DISTRIBUTE_H_
