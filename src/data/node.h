// Node: one transform of a Dataset; PassStream: one pass over it.
//
// A Dataset is a chain of immutable nodes. A node whose elements are rows of
// fixed tensors is *indexed*: it has rows() and hands out row numbers, so that
// a batch after it gathers rows and single elements are never built.
// Nodes are shared between threads; a PassStream belongs to one at a time.

#ifndef BERTH_DATA_NODE_H_
#define BERTH_DATA_NODE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "berth/data.h"
#include "berth/errors.h"
#include "data/row_source.h"

namespace berth::data {

class PassReader;  // data/pass_state.h
class PassState;
class PassWriter;

// Throws errors::Unimplemented: a stream that cannot be saved.
[[noreturn]] void cannot_save();

// A sequence of T that is computed as it is read.
template <class T>
class PassStream {
 public:
  virtual ~PassStream() = default;
  // Sets `out` (whose storage is used again) to the next value; false at the
  // end and after a stop. Not called again after false or an exception.
  virtual bool next(T* out) = 0;

  // Where the pass stands: data/pass_state.h says how. A stream has state(), or
  // save() and restore() where these differ in more than their direction.
  virtual void save(PassWriter& w);
  virtual void restore(PassReader& r);
  virtual void state(PassState&) { cannot_save(); }
};
using ElementStream = PassStream<Tensors>;
using IndexStream = PassStream<int64_t>;

// What a pass counts for Iterator::status(). Thread-safe.
struct PassCounts {
  std::atomic<int64_t> ignored{0};
  std::mutex mutex;
  std::string last_error;  // under mutex
};

class Node;

// This task's part of a pass that several tasks share (auto_shard.h).
struct PassShard {
  int64_t tasks = 1, index = 0;
  bool by_hint = false;  // shard(SHARD_HINT, SHARD_HINT) takes it
  // This task takes every tasks-th of what it hands out, from number `index`
  // on: the names of files. Null: nothing is taken by file.
  const Node* files = nullptr;
  bool operator==(const PassShard&) const = default;
};

// What all streams of one pass know.
struct PassInfo {
  // Asked for when the reader goes away; loops over many elements look at it.
  std::stop_token stop;
  // Only looks at the first element: must not advance state of a node.
  bool peek = false;
  // restore() comes next: threads start at the first next().
  bool restoring = false;
  // A stream may be read on after an error, which concerned one element
  // (ignore_errors).
  bool keep_going = false;
  PassCounts* counts = nullptr;  // outlives the pass; null: nobody asks
  PassShard shard = {};
};

// What loops over many elements ask: whether the reader has gone away. Throws
// errors::Cancelled at Ctrl-C.
inline bool stopped(const std::stop_token& stop) {
  check_interrupt();
  return stop.stop_requested();
}

// The names of components; null: they have none.
using NamesRef = std::shared_ptr<const Names>;

// What a node remembers between passes.
struct NodeMemory {
  int64_t passes = 0;  // begun so far
  int64_t seed = 0;
};

// What the streams of one node took, what they read included
// (data/stage_times.h). Relaxed counters.
struct StageTimes {
  std::atomic<int64_t> elements{0};
  std::atomic<int64_t> ns{0};
};

class Node {
 public:
  // `what` is static: the transform's name in errors.
  Node(const char* what, Site site) : what_(what), site_(site) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // The tensors that indices() counts rows of; null when not indexed.
  virtual const RowSource* rows() const { return nullptr; }
  // Starts a pass. indices() only when indexed, elements() only when not.
  virtual std::unique_ptr<IndexStream> indices(const PassInfo& pass) const;
  virtual std::unique_ptr<ElementStream> elements(const PassInfo& pass) const;
  // Starts a pass over batches of `size` elements that the node makes itself;
  // null when it has no quicker way than putting elements on top of each other.
  virtual std::unique_ptr<ElementStream> batches(
      const PassInfo&, size_t, bool /*drop_remainder*/) const {
    return nullptr;
  }
  // Starts a pass over elements, indexed or not.
  std::unique_ptr<ElementStream> open(const PassInfo& pass) const;

  virtual int64_t cardinality() const = 0;
  virtual const std::vector<TensorSpec>& specs() const = 0;

  // The names of its components. May compute the first element.
  virtual NamesRef names() const { return nullptr; }

  // How many files it reads, kUnknown; none: it reads none.
  virtual std::optional<int64_t> num_files() const { return std::nullopt; }
  // The node whose elements are the names of the files that datasets are made
  // of; null: it makes none.
  virtual const Node* file_names() const { return nullptr; }
  // Whether it is split by the tasks of a pass (SHARD_HINT).
  virtual bool takes_hint() const { return false; }

  // What it chose and why, in a line; "": nothing but its cardinality.
  virtual std::string explain() const { return {}; }

  StageTimes& times() const { return times_; }
  // The nanoseconds of its own work, on each of its threads, so far.
  virtual int64_t own_ns() const;
  // What makes it faster, for after its times; "": nothing that it knows.
  virtual std::string advice() const { return {}; }

  // The nodes that this one reads.
  virtual std::vector<const Node*> inputs() const { return {}; }
  // What the next pass depends on, where it does (shuffle).
  virtual NodeMemory memory() const { return {}; }
  virtual void set_memory(const NodeMemory&) const {}

  // "shuffle (train.cc:12)"
  std::string where() const;
  const char* what() const { return what_; }
  Site site() const { return site_; }

 private:
  const char* what_;
  Site site_;
  mutable StageTimes times_;

  std::unique_ptr<ElementStream> open_untimed(const PassInfo& pass) const;
};

// Specs that are computed when they are first asked for. Any thread.
class LazySpecs {
 public:
  template <class Make>
  const std::vector<TensorSpec>& get(Make&& make) const {
    std::call_once(once_, [&] { specs_ = make(); });
    return specs_;
  }

 private:
  mutable std::once_flag once_;
  mutable std::vector<TensorSpec> specs_;
};

// Starts a pass over elements or row numbers, whichever T asks for.
template <class T>
std::unique_ptr<PassStream<T>> open(const Node& node, const PassInfo& pass);
template <>
inline std::unique_ptr<ElementStream> open(const Node& node,
                                           const PassInfo& pass) {
  return node.open(pass);
}
template <>
std::unique_ptr<IndexStream> open(const Node& node, const PassInfo& pass);

// A node that reads one other.
class Transform : public Node {
 public:
  Transform(const char* what, Site site, const Dataset& parent)
      : Node(what, site), parent_(parent) {}
  int64_t cardinality() const override { return parent().cardinality(); }
  const std::vector<TensorSpec>& specs() const override {
    return parent().specs();
  }
  NamesRef names() const override { return parent().names(); }
  std::vector<const Node*> inputs() const override { return {&parent()}; }
  const Node& parent() const { return parent_.node(); }
  const Dataset& dataset() const { return parent_; }

 private:
  Dataset parent_;
};

// A transform that drops, repeats or permutes elements without looking at
// them: indexed if its parent is. Self has a template
//   unique_ptr<PassStream<T>> stream<T>(const PassInfo&) const.
template <class Self>
class Selection : public Transform {
 public:
  using Transform::Transform;
  const RowSource* rows() const override { return parent().rows(); }
  std::unique_ptr<IndexStream> indices(const PassInfo& pass) const override {
    return self().template stream<int64_t>(pass);
  }
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return self().template stream<Tensors>(pass);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

// Makes a dataset of a node.
template <class N, class... Args>
Dataset make_dataset(Args&&... args) {
  return Dataset(std::make_shared<const N>(std::forward<Args>(args)...));
}

// Throws errors::InvalidArgument "<where>: <problem>".
[[noreturn]] void refuse(const std::string& where, const std::string& problem);

// The error of a pass as a value, so that it can change threads.
struct PassError {
  errors::Code code = errors::Code::kUnknown;
  std::string message;
  // Describes the exception being handled.
  static PassError current();
  [[noreturn]] void raise() const { errors::raise(code, message); }
};

}  // namespace berth::data

#endif  // BERTH_DATA_NODE_H_
