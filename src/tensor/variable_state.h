// VariableState: the storage behind a Variable.
//
// The address of the storage is fixed for life: plans embed it, but for those
// that rebind. Reading shares
// one snapshot block with all readers of one version; a writer that finds a
// live snapshot first moves the old bytes out to it. After a failed run the
// state is torn until it is assigned. Thread-safe: `mutex` guards all; those
// who read, or launch work that reads, hold it shared, writers hold it
// exclusively. Work and destructors run while a thread waits for a stream with
// `mutex` held, so they must not take it: the end of a snapshot takes only
// `snapshot_mutex`, under which nobody waits.

#ifndef BERTH_TENSOR_VARIABLE_STATE_H_
#define BERTH_TENSOR_VARIABLE_STATE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "berth/tensor.h"
#include "berth/variable.h"
#include "device/block.h"
#include "device/device.h"

namespace berth {

struct VariableState {
  std::string name;
  DType dtype = float32;
  Shape shape;
  // What values of other shapes must fit; any_shape: nothing.
  std::optional<Shape> fits;
  bool any_shape = false;
  bool trainable = true;
  Device* device = nullptr;
  Site site = {};
  uint64_t serial = 0;  // unique, in order of creation
  bool asked = false;   // a scope of the user's named the device
  // Holds on the address: plans. Raised with `mutex` held shared.
  std::atomic<int> holds{0};
  // For a variable of a strategy (berth/variable.h, tensor/mirrors.h).
  VariableSynchronization synchronization = VariableSynchronization::kAuto;
  VariableAggregation aggregation = VariableAggregation::kNone;
  const void* strategy = nullptr;  // that made it; an identity alone
  // kOnRead: what replicas 1, 2, ... have; this is what replica 0 has.
  std::vector<Tensor> parts;
  // Counts the writes: prepare_write() adds one. Under `mutex`.
  uint64_t version = 0;
  // Links of tensor/mirrors.h, which alone touches them.
  std::vector<Tensor> mirrors;    // of a home
  TensorImpl* home = nullptr;     // of a mirror, while there is one; not owned
  uint64_t mirrored_version = 0;  // of a mirror: what it has. Under `mutex`.

  std::shared_mutex mutex;
  BlockRef storage;
  // Set where a failure is found, also without the lock (asynchronous devices).
  std::atomic<bool> torn{false};
  std::mutex torn_mutex;
  std::string torn_by;  // what failed

  std::mutex snapshot_mutex;  // the two below
  Block* snapshot = nullptr;  // not owned; may be dying
  // Uses of snapshots that have ended: the next writer waits for them.
  std::vector<Event> late_uses;

  // Links of tensor/shards.h, which alone touches them.
  std::vector<Tensor> shards;  // of a home whose elements are divided
  int64_t shard_begin = -1;    // of a shard: its first element, or place along:
  int split_axis = -1;  // of a home: what divides it; -1: ranges of elements
  std::atomic<bool> behind{false};  // of a home: its shards were written since

  VariableState() = default;
  ~VariableState();
  VariableState(const VariableState&) = delete;
  VariableState& operator=(const VariableState&) = delete;

  // Whether an assignment may give it other storage. Plans cannot hold it.
  bool rebinds() const {
    return any_shape || fits.has_value() || dtype == string_;
  }
  size_t size_bytes() const {
    return static_cast<size_t>(shape.num_elements()) * size_of(dtype);
  }
};

// Returns a handle of dtype resource whose storage is uninitialised.
// `shape` must be fully defined.
Tensor make_variable(Device& device, std::string name, DType dtype,
                     const Shape& shape, bool trainable, Site site);

// Names its storage, for the error of a device without memory.
void name_variable(const VariableState& v);

// Returns a handle of a variable without storage: for plans that are never
// run.
Tensor make_unbacked_variable(Device& device, std::string name, DType dtype,
                              const Shape& shape);

// Returns the state of a handle of dtype resource.
// Throws errors::InvalidArgument for another tensor.
VariableState& variable_state(const Tensor& handle);

// Returns the value now, sharing the storage until the next write.
// Throws errors::FailedPrecondition when torn.
Tensor read_variable(const Tensor& handle);

// Moves the bytes out to a live snapshot, lets the compute stream wait for the
// readers on other streams and counts a version. The caller holds the exclusive
// lock and will write on that stream. Throws errors::ResourceExhausted.
void prepare_write(VariableState& state);

// Keeps a variable where it is: who embeds its address has one.
class VariableHold {
 public:
  explicit VariableHold(Tensor handle);
  ~VariableHold();
  VariableHold(VariableHold&&) noexcept = default;
  VariableHold& operator=(VariableHold&&) = delete;

 private:
  Tensor handle_;
};

// True when the variable could be put on another device: nobody holds it, it is
// not torn, and no strategy has it but this one, which has it on one device.
bool can_move(const VariableState& state, const void* strategy = nullptr);

// Gives the variable storage on `device`, with its value. False, and nothing
// changes: it cannot be moved. Waits for work that uses it. Throws
// errors::ResourceExhausted.
bool move_variable(const Tensor& handle, Device& device,
                   const void* strategy = nullptr);

// Makes a variable that rebinds ready for a value: of text it has the value
// then (true), else room for it. Waits for work that uses the old storage.
// Throws errors::InvalidArgument for a shape that does not fit,
// errors::ResourceExhausted.
bool rebind_variable(const Tensor& handle, const Tensor& value);

// Marks the state torn: a run that was writing it failed because of `why`.
void mark_torn(VariableState& state, std::string why);

// Launches a marker after work on `stream` that writes the variables: when
// that work fails, or is skipped, they become torn.
// A repeated writer makes the list once.
using WrittenVariables = std::shared_ptr<const std::vector<Tensor>>;
void watch_writes(Stream& stream, WrittenVariables handles, const char* what);
void watch_writes(Stream& stream, std::vector<Tensor> handles,
                  const char* what);

// Throws errors::FailedPrecondition when torn. The caller holds a lock.
void check_not_torn(VariableState& state);

// Returns the variable whose storage `block` still shares; null for other
// blocks. The caller keeps the block alive.
VariableState* borrowed_from(Block* block);

// Returns the handle of that variable, which must exist.
Tensor borrowed_handle(Block* block);

// Holds the variable of a borrowed snapshot while a kernel reads it. Does
// nothing for other blocks.
class ReadGuard {
 public:
  ReadGuard() = default;
  ReadGuard(const ReadGuard&) = delete;
  ReadGuard& operator=(const ReadGuard&) = delete;
  ~ReadGuard() {
    if (state_) state_->mutex.unlock_shared();
  }
  void hold(Block* block);  // once

 private:
  VariableState* state_ = nullptr;
};

}  // namespace berth

#endif  // BERTH_TENSOR_VARIABLE_STATE_H_
