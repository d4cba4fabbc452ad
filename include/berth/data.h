// data: input pipelines (tf.data).
//
// A Dataset describes a sequence of elements; an element is a list of
// components, host tensors. Nothing runs before an iterator is made, and each
// iterator starts from the beginning:
//   auto batches = data::Dataset::from_tensor_slices({x, y})
//                      .shuffle(10000).batch(64).prefetch(data::AUTOTUNE);
//   for (const Tensors& batch : batches) step(batch[0], batch[1]);
// Slices that are shuffled, repeated, cut and then batched are never built one
// by one: the chain passes row numbers on and batch gathers the rows.
// Thread-safe: a Dataset is an immutable value handle and distinct threads may
// iterate it. One Iterator belongs to one thread at a time.

#ifndef BERTH_DATA_H_
#define BERTH_DATA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/shape.h"
#include "berth/site.h"
#include "berth/tensor.h"

namespace berth::data {

class Node;  // data/node.h

// Values of Dataset::cardinality() (tf.data.INFINITE_CARDINALITY, ...).
inline constexpr int64_t kInfinite = -1;
inline constexpr int64_t kUnknown = -2;

// Lets prefetch choose its depth and map the number of its threads.
inline constexpr int64_t AUTOTUNE = -1;

// Returns the next element, nullopt at the end.
using Generator = std::function<std::optional<Tensors>()>;
// Starts a generator; called once per iteration.
using GeneratorFactory = std::function<Generator()>;
using MapFunction = std::function<Tensors(const Tensors& element)>;
using Predicate = std::function<bool(const Tensors& element)>;

struct MapOptions {
  // Threads that call the function at once; 0: the one that calls next().
  int64_t num_parallel_calls = 0;
  // False hands elements on as they get ready.
  bool deterministic = true;
};
struct BatchOptions {
  bool drop_remainder = false;  // leave a smaller last batch out
};
struct ShuffleOptions {
  std::optional<uint64_t> seed = std::nullopt;  // none: a new one each time
  // Each iteration has its own order, which follows from the seed and the
  // number of iterations before; false: all have that of the first.
  bool reshuffle_each_iteration = true;
};

// Where a pass stands: what Iterator::save() returns. Text and host tensors
// that nothing writes any more, to be kept in a file (train::Checkpoint).
struct IteratorState {
  std::string text;  // JSON
  Tensors tensors;   // what buffers hold, row numbers
};

// One pass over a dataset. Ends its threads when destroyed.
class Iterator {
 public:
  Iterator(Iterator&&) noexcept;
  Iterator& operator=(Iterator&&) noexcept;
  ~Iterator();

  // Returns the next element, nullopt at the end. Throws what a transform
  // throws, naming the transform and the line that made it; from then on
  // every call throws that again.
  std::optional<Tensors> next();
  // The same into `element`, whose storage is used again; false at the end.
  bool next(Tensors& element);

  // Returns where the pass stands: positions, random state, what is buffered.
  // The pass goes on afterwards. Threads of the pass are held still meanwhile.
  // Throws errors::FailedPrecondition after an error of next().
  IteratorState save();
  // Goes to where the pass of an equal dataset stood, in this process or
  // another: what next() returns from here on is equal to the bit, later
  // iterations of the dataset included. What a generator knows is its own: it
  // starts again and its first elements are left out. Throws
  // errors::InvalidArgument when the state is that of other transforms,
  // errors::DataLoss when it is damaged; the iterator then stands at the
  // beginning of a pass.
  void restore(const IteratorState& state);

 private:
  friend class Dataset;
  struct State;
  explicit Iterator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Dataset {
 public:
  // Cuts each component along its first dimension: [n, ...] gives n elements
  // of [...]. Throws errors::InvalidArgument unless all first dimensions are
  // equal, errors::FailedPrecondition inside a trace.
  static Dataset from_tensor_slices(const Tensors& components,
                                    Site site = Site::here());
  // Calls `factory` at the start of each iteration, then what it returned for
  // each element. Elements must fit `specs`, one per component (unknown
  // dimensions fit all); next() throws errors::InvalidArgument otherwise.
  static Dataset from_generator(GeneratorFactory factory,
                                std::vector<TensorSpec> specs,
                                Site site = Site::here());
  // int64 scalars start, start + step, ... before `stop`. Throws
  // errors::InvalidArgument for step 0.
  static Dataset range(int64_t stop, Site site = Site::here());
  static Dataset range(int64_t start, int64_t stop, int64_t step = 1,
                       Site site = Site::here());

  // Replaces each element by fn(element). Ops in `fn` run eagerly on /CPU:0
  // unless it opens a device scope. With num_parallel_calls (or AUTOTUNE: one
  // per core) `fn` is called from that many threads at once.
  Dataset map(MapFunction fn, const MapOptions& options = {},
              Site site = Site::here()) const;
  // Keeps the elements for which `keep` returns true.
  Dataset filter(Predicate keep, Site site = Site::here()) const;
  // Puts `size` elements on top of each other: [...] becomes [size, ...]. The
  // last batch may be smaller. next() throws errors::InvalidArgument when
  // shapes or dtypes within a batch differ.
  Dataset batch(int64_t size, const BatchOptions& options = {},
                Site site = Site::here()) const;
  // Draws each element uniformly from a buffer of `buffer_size` elements,
  // refilled in order; with a buffer as long as the dataset all orders are
  // equally likely. The order depends on the seed alone.
  Dataset shuffle(int64_t buffer_size, const ShuffleOptions& options = {},
                  Site site = Site::here()) const;
  // The sequence `count` times; a negative count: for ever.
  Dataset repeat(int64_t count = -1, Site site = Site::here()) const;
  // The first `count` elements; a negative count: all.
  Dataset take(int64_t count, Site site = Site::here()) const;
  // All but the first `count` elements; a negative count skips all.
  Dataset skip(int64_t count, Site site = Site::here()) const;
  // Computes up to `buffer_size` elements ahead on a thread of its own. 0 does
  // nothing; AUTOTUNE starts with 2 and doubles while the reader waits.
  Dataset prefetch(int64_t buffer_size, Site site = Site::here()) const;

  // Copies each element to `device` ("/GPU:0"); text stays on the host. The
  // copies of an element go on while the next ones are computed, and whoever
  // reads it waits for them (tf.data.experimental.copy_to_device). Throws
  // errors::InvalidArgument when there is no such device.
  Dataset copy_to_device(const std::string& device,
                         Site site = Site::here()) const;
  // copy_to_device, then prefetch: so many elements are on the device, or on
  // their way, before they are asked for. The last transform of a chain
  // (tf.data.experimental.prefetch_to_device).
  Dataset prefetch_to_device(const std::string& device,
                             int64_t buffer_size = AUTOTUNE,
                             Site site = Site::here()) const;

  // The number of elements, kInfinite or kUnknown.
  int64_t cardinality() const;
  // One spec per component; dimensions that vary are unknown. After map this
  // computes the first element, once; empty if there is none.
  const std::vector<TensorSpec>& element_spec() const;

  Iterator make_iterator() const;

  // for (const Tensors& element : dataset): the element is valid until the
  // next one is asked for. Inside a scope of another device than the CPU this
  // is reported ("dataset-in-device-scope"): the pipeline runs on the host.
  class iterator;
  iterator begin(Site site = Site::here()) const;
  std::default_sentinel_t end() const { return {}; }

  // Implementation handle.
  explicit Dataset(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  const Node& node() const { return *node_; }

 private:
  std::shared_ptr<const Node> node_;
};

class Dataset::iterator {
 public:
  using value_type = Tensors;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  const Tensors& operator*() const { return element_; }
  const Tensors* operator->() const { return &element_; }
  iterator& operator++() {
    done_ = !source_.next(element_);
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return done_; }

 private:
  friend class Dataset;
  explicit iterator(Iterator source) : source_(std::move(source)) { ++*this; }
  Iterator source_;
  Tensors element_;
  bool done_ = false;
};

}  // namespace berth::data

#endif  // BERTH_DATA_H_
