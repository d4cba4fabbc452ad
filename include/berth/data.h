// data: input pipelines (tf.data).
//
// A Dataset describes a sequence of elements; an element is a list of
// components, host tensors, which may have names (data_element.h). Nothing runs
// before an iterator is made, and each iterator starts from the beginning:
//   auto batches = data::Dataset::from_tensor_slices({x, y})
//                      .shuffle(10000).batch(64).prefetch(data::AUTOTUNE);
//   for (const Tensors& batch : batches) step(batch[0], batch[1]);
// Slices that are shuffled, repeated, cut and then batched are never built one
// by one: the chain passes row numbers on and batch gathers the rows.
// Thread-safe: a Dataset is an immutable value handle and distinct threads may
// iterate it. One Iterator belongs to one thread at a time.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_DATA_H_
#define BERTH_DATA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "berth/data_element.h"
#include "berth/data_row.h"
#include "berth/shape.h"
#include "berth/site.h"
#include "berth/tensor.h"

namespace berth::data {

class Node;  // data/node.h

// Values of Dataset::cardinality() (tf.data.INFINITE_CARDINALITY, ...).
inline constexpr int64_t kInfinite = -1;
inline constexpr int64_t kUnknown = -2;

// Lets prefetch choose its depth and map its number of threads.
inline constexpr int64_t AUTOTUNE = -1;

// Returns the next element, nullopt at the end.
using Generator = std::function<std::optional<Tensors>()>;
// Starts a generator; called once per iteration.
using GeneratorFactory = std::function<Generator()>;
using MapFunction = std::function<Tensors(const Tensors& element)>;
using Predicate = std::function<bool(const Tensors& element)>;
// Makes a dataset from an element, for example from the name of a file.
using DatasetFunction = std::function<class Dataset(const Tensors& element)>;
// Functions of elements with names, which take a const Element&.
using NamedMapFunction = std::function<Element(const Element& element)>;
using NamedPredicate = std::function<bool(const Element& element)>;

template <class F>
concept TakesElement = std::is_invocable_v<F&, const Element&> &&
    !std::is_invocable_v<F&, const Tensors&>;

// What map() and filter() cannot call.
template <class F, class Plain>
concept TakesNoElement = !TakesElement<F> && !std::is_convertible_v<F, Plain>;

struct MapOptions {
  // Threads that call the function at once; 0: the thread that calls next().
  // AUTOTUNE: as many as are useful, of the cores that the host has for all
  // pipelines.
  int64_t num_parallel_calls = 0;
  // False returns elements as they become ready.
  bool deterministic = true;
  // The function takes any number of stacked elements, [n, ...], and returns as
  // many. It is then called with a whole batch if slices come before it
  // (shuffle, repeat, take and skip may stand between them and batch), in the
  // thread that makes the batch.
  bool vectorized = false;
};
struct MapRowsOptions {
  // Seed of the row's random numbers. None: from random::set_seed().
  std::optional<uint64_t> seed = std::nullopt;
};
struct IgnoreErrorsOptions {
  bool log_warning = false;  // reports each ("element-ignored")
};
struct SnapshotOptions {
  // For a file that another dataset wrote, or that is damaged: false refuses
  // it, true writes it again.
  bool rebuild = false;
};
struct BatchOptions {
  bool drop_remainder = false;  // omit a smaller last batch
  // Batches assembled at once, as in MapOptions.
  int64_t num_parallel_calls = 0;
  bool deterministic = true;
};
struct RebatchOptions {
  bool drop_remainder = false;
};
struct PaddedBatchOptions {
  // One per component; -1 is the largest of the batch, and the default for
  // every dimension.
  std::vector<Shape> padded_shapes = {};
  // One scalar per component, or one for all; 0, false and "" when absent.
  Tensors padding_values = {};
  bool drop_remainder = false;
};
struct InterleaveOptions {
  int64_t cycle_length = AUTOTUNE;  // datasets that are open at once
  int64_t block_length = 1;         // consecutive elements of one of them
  // Threads that read ahead, AUTOTUNE: one per core; 0: none.
  int64_t num_parallel_calls = 0;
  // False returns elements as they become ready.
  bool deterministic = true;
};
struct SampleOptions {
  std::vector<double> weights = {};  // one per dataset; none: equal ones
  std::optional<uint64_t> seed = std::nullopt;
  // Ends with the first drawn dataset that has no more elements.
  bool stop_on_empty_dataset = false;
  // Draws again in each iteration.
  bool rerandomize_each_iteration = false;
};
struct ChooseOptions {
  bool stop_on_empty_dataset = true;
};
struct WindowOptions {
  std::optional<int64_t> shift = std::nullopt;  // between starts; default: size
  int64_t stride = 1;  // between elements of one window
  bool drop_remainder = false;
};
struct GroupByWindowOptions {
  // Exactly one of the two: elements per window, for every key or by key.
  int64_t window_size = 0;
  std::function<int64_t(int64_t key)> window_size_func = {};
};
struct BucketOptions {
  std::vector<Shape> padded_shapes = {};  // as in PaddedBatchOptions
  Tensors padding_values = {};
  // Pads to one less than the upper boundary of the bucket; the last bucket
  // must then stay empty.
  bool pad_to_bucket_boundary = false;
  bool no_padding = false;  // makes ragged batches (ragged_batch)
  bool drop_remainder = false;
};
struct ResampleOptions {
  std::vector<double> initial_dist = {};  // none: estimated while it runs
  std::optional<uint64_t> seed = std::nullopt;
};
struct RandomOptions {
  std::optional<uint64_t> seed = std::nullopt;
  bool rerandomize_each_iteration = false;
};
struct ShuffleOptions {
  std::optional<uint64_t> seed = std::nullopt;  // none: by random::set_seed()
  // Each iteration has its own order, which depends on the seed and the number
  // of iterations before; false: all have the order of the first.
  bool reshuffle_each_iteration = true;
};

// The position of a pass, returned by Iterator::save(). Text and host tensors
// that do not change any more, to be stored in a file (train::Checkpoint).
struct IteratorState {
  std::string text;  // JSON
  Tensors tensors;   // contents of buffers, row numbers
};
class Windows;

// What a pass has done so far.
struct IteratorStatus {
  int64_t elements = 0;        // returned so far
  bool ended = false;          // next() returns no more elements, or throws
  int64_t errors_ignored = 0;  // by ignore_errors
  std::string last_error;      // that was ignored, or ended the pass
};

// One pass over a dataset. Ends its threads when destroyed.
class Iterator {
 public:
  Iterator(Iterator&&) noexcept;
  Iterator& operator=(Iterator&&) noexcept;
  ~Iterator();

  // Returns the next element, nullopt at the end. Throws the error of a
  // transform, naming the transform and the line that made it; from then on
  // every call throws it again.
  std::optional<Element> next();
  // Sets `element`, whose storage is reused; false at the end.
  bool next(Tensors& element);

  IteratorStatus status() const;

  // Returns the position of the pass: positions, random state, buffers. The
  // pass continues afterwards; its threads are paused meanwhile. Throws
  // errors::FailedPrecondition after an error of next().
  IteratorState save();
  // Continues where the pass of an equal dataset stood, in this process or
  // another: next() then returns the same bit for bit, later iterations of the
  // dataset included. The state of a generator is its own: it starts again and
  // its first elements are skipped. Throws errors::InvalidArgument if the state
  // is that of other transforms, errors::DataLoss if it is damaged; the
  // iterator is then at the beginning of a pass.
  void restore(const IteratorState& state);

  // Sets `element` with its names; false at the end.
  bool next_named(Element& element);

 private:
  friend class Dataset;
  struct State;
  explicit Iterator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Dataset {
 public:
  // Splits each component along its first dimension: [n, ...] gives n elements
  // of [...]. Throws errors::InvalidArgument unless all first dimensions are
  // equal, errors::FailedPrecondition inside a trace.
  static Dataset from_tensor_slices(const Tensors& components,
                                    Site site = Site::here());
  static Dataset from_tensor_slices(const Tensor& component,
                                    Site site = Site::here()) {
    return from_tensor_slices(Tensors{component}, site);
  }
  // With names: from_tensor_slices({{"x", x}, {"y", y}}).
  static Dataset from_tensor_slices(const Element& components,
                                    Site site = Site::here());
  // Calls `factory` at the start of each iteration, then its result for each
  // element. Elements must fit `specs`, one per component (unknown dimensions
  // fit all); next() throws errors::InvalidArgument otherwise. Components have
  // the names of the specs if all have one: {{Shape{28, 28}, uint8, "image"},
  // {Shape{}, int64, "label"}}.
  static Dataset from_generator(GeneratorFactory factory,
                                std::vector<TensorSpec> specs,
                                Site site = Site::here());
  // int64 scalars start, start + step, ... before `stop`. Throws
  // errors::InvalidArgument for step 0.
  static Dataset range(int64_t stop, Site site = Site::here());
  static Dataset range(int64_t start, int64_t stop, int64_t step = 1,
                       Site site = Site::here());

  // One element: `components` unchanged.
  static Dataset from_tensors(const Tensors& components,
                              Site site = Site::here());
  // int64 scalars start, start + step, ... without end.
  static Dataset counter(int64_t start = 0, int64_t step = 1,
                         Site site = Site::here());
  // Uniform int64 scalars in [0, 2^32), without end.
  static Dataset random(const RandomOptions& options = {},
                        Site site = Site::here());

  // Combines the components of all datasets; ends with the shortest.
  static Dataset zip(const std::vector<Dataset>& datasets,
                     Site site = Site::here());
  // This dataset, then `other`, whose components have the same dtypes.
  Dataset concatenate(const Dataset& other, Site site = Site::here()) const;
  // Each element from one of `datasets`, drawn by weight.
  static Dataset sample_from_datasets(const std::vector<Dataset>& datasets,
                                      const SampleOptions& options = {},
                                      Site site = Site::here());
  // Each element from the dataset whose number is the next element of
  // `choice_dataset`, an int64 scalar.
  static Dataset choose_from_datasets(const std::vector<Dataset>& datasets,
                                      const Dataset& choice_dataset,
                                      const ChooseOptions& options = {},
                                      Site site = Site::here());

  // Reads `cycle_length` of the datasets that `fn` makes from the elements in
  // turn, `block_length` elements of each; one that ends is replaced by the
  // next.
  Dataset interleave(DatasetFunction fn, const InterleaveOptions& options = {},
                     Site site = Site::here()) const;
  // The datasets that `fn` makes from the elements, one after the other.
  Dataset flat_map(DatasetFunction fn, Site site = Site::here()) const;

  // Replaces each element by fn(element). Ops in `fn` run eagerly on /CPU:0
  // unless it opens a device scope. With num_parallel_calls (or AUTOTUNE: one
  // per core) `fn` is called from that many threads at once.
  Dataset map(MapFunction fn, const MapOptions& options = {},
              Site site = Site::here()) const;
  // With names, which the result may change:
  //   .map([](const data::Element& e) {
  //     return data::Element{{"x", cast(e["x"], float32)}, {"y", e["y"]}};
  //   })
  // All results must have those of the first. A function of Tensors gives
  // components without names.
  template <TakesElement F>
  Dataset map(F fn, const MapOptions& options = {},
              Site site = Site::here()) const {
    return map_named(std::move(fn), options, site);
  }
  template <TakesNoElement<MapFunction> F>
  Dataset map(F, const MapOptions& = {}, Site = {}) const {
    static_assert(TakesElement<F>,
                  "map: fn takes const Tensors& and returns Tensors, or takes "
                  "const data::Element& and returns one");
    return *this;
  }
  // Replaces each element by the output of a plain C++ function: fn(in, out,
  // random) reads the bytes of one element and fills components of these
  // specs, whose shapes are known, instead of ops on tensors (data_row.h).
  // If slices come before it, rows are written directly into the batch.
  //   .map_rows([](const data::RowIn& in, data::RowOut& out, data::RowRandom&)
  //   {
  //     const auto from = in.get<uint8_t>(0);
  //     const auto to = out.get<float>(0);
  //     for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] / 255.0f;
  //   }, {{Shape{28, 28}, float32}})
  Dataset map_rows(RowFunction fn, std::vector<TensorSpec> specs,
                   const MapRowsOptions& options = {},
                   Site site = Site::here()) const;
  // Keeps the elements for which `keep` returns true.
  Dataset filter(Predicate keep, Site site = Site::here()) const;
  template <TakesElement F>
  Dataset filter(F keep, Site site = Site::here()) const {
    return filter_named(std::move(keep), site);
  }
  template <TakesNoElement<Predicate> F>
  Dataset filter(F, Site = {}) const {
    static_assert(TakesElement<F>,
                  "filter: keep takes const Tensors& or const data::Element& "
                  "and returns a bool");
    return *this;
  }
  // Stacks `size` elements: [...] becomes [size, ...]. The last batch may be
  // smaller. next() throws errors::InvalidArgument if shapes or dtypes within a
  // batch differ.
  Dataset batch(int64_t size, const BatchOptions& options = {},
                Site site = Site::here()) const;
  // Batches elements whose shapes differ: pads each to the largest of the
  // batch, or to padded_shapes.
  Dataset padded_batch(int64_t size, const PaddedBatchOptions& options = {},
                       Site site = Site::here()) const;
  // Batches without padding: a component whose first dimension varies becomes
  // two, its rows [sum of lengths, ...] and row_splits int64 [size + 1], where
  // element i is rows row_splits[i] to row_splits[i + 1] (ragged_to_tensor()).
  Dataset ragged_batch(int64_t size, const BatchOptions& options = {},
                       Site site = Site::here()) const;
  // Batches elements of similar length together: bucket i takes lengths from
  // bucket_boundaries[i - 1] to below bucket_boundaries[i], the first all
  // smaller ones, the last all from the last boundary on. bucket_batch_sizes
  // has one more element than bucket_boundaries.
  Dataset bucket_by_sequence_length(
      std::function<int64_t(const Tensors& element)> element_length_func,
      std::vector<int64_t> bucket_boundaries,
      std::vector<int64_t> bucket_batch_sizes,
      const BucketOptions& options = {}, Site site = Site::here()) const;
  // Splits each element along its first dimension, as from_tensor_slices does.
  Dataset unbatch(Site site = Site::here()) const;
  // Changes batch sizes: `sizes` in turn.
  Dataset rebatch(std::vector<int64_t> sizes,
                  const RebatchOptions& options = {},
                  Site site = Site::here()) const;
  // Datasets of `size` consecutive elements each.
  Windows window(int64_t size, const WindowOptions& options = {},
                 Site site = Site::here()) const;
  // Collects elements with equal key_func into windows and continues with the
  // dataset that reduce_func makes of each; at the end the remaining elements
  // form smaller windows, in the order of their keys.
  Dataset group_by_window(
      std::function<int64_t(const Tensors& element)> key_func,
      std::function<Dataset(int64_t key, const Dataset& window)> reduce_func,
      const GroupByWindowOptions& options, Site site = Site::here()) const;

  // Draws each element uniformly from a buffer of `buffer_size` elements,
  // refilled in order; if the buffer holds the whole dataset, all orders are
  // equally likely. The order depends on the seed only.
  Dataset shuffle(int64_t buffer_size, const ShuffleOptions& options = {},
                  Site site = Site::here()) const;
  // Repeats the sequence `count` times; a negative count: for ever.
  Dataset repeat(int64_t count = -1, Site site = Site::here()) const;
  // The first `count` elements; a negative count: all.
  Dataset take(int64_t count, Site site = Site::here()) const;
  // All but the first `count` elements; a negative count skips all.
  Dataset skip(int64_t count, Site site = Site::here()) const;
  // The elements before the first for which `keep` returns false.
  Dataset take_while(Predicate keep, Site site = Site::here()) const;
  // Every num_shards-th element, starting with number `index`.
  Dataset shard(int64_t num_shards, int64_t index,
                Site site = Site::here()) const;
  // Prepends the number of the element, an int64 scalar, to its components.
  Dataset enumerate(int64_t start = 0, Site site = Site::here()) const;
  // Drops elements that occurred before.
  Dataset unique(Site site = Site::here()) const;
  // Calls fn(state, element), which returns the next state and the output
  // element; `initial_state` is the first.
  Dataset scan(Tensors initial_state,
               std::function<std::pair<Tensors, Tensors>(
                   const Tensors& state, const Tensors& element)>
                   fn,
               Site site = Site::here()) const;
  // Drops elements until classes have the distribution `target_dist`;
  // class_func returns a number below its size. Prepends the class, an int64
  // scalar, to the components.
  Dataset rejection_resample(
      std::function<int64_t(const Tensors& element)> class_func,
      std::vector<double> target_dist, const ResampleOptions& options = {},
      Site site = Site::here()) const;
  // fn(*this).
  Dataset apply(const std::function<Dataset(const Dataset&)>& fn) const {
    return fn(*this);
  }

  // Calls state = fn(state, element) for all elements; returns the last.
  Tensors reduce(Tensors initial_state,
                 const std::function<Tensors(const Tensors& state,
                                             const Tensors& element)>& fn,
                 Site site = Site::here()) const;
  // Returns the only element. Throws errors::InvalidArgument if there is none,
  // or more than one.
  Tensors get_single_element(Site site = Site::here()) const;

  // Continues after errors: an element whose function throws, or that does not
  // fit its batch, is skipped and counted (Iterator::status). A generator that
  // throws has ended.
  Dataset ignore_errors(const IgnoreErrorsOptions& options = {},
                        Site site = Site::here()) const;
  // Keeps the elements of the first complete iteration and returns them in all
  // later ones: in memory, or in a file, which other processes can use, too. An
  // iteration that ends early keeps nothing. Earlier transforms are not run
  // again: a file that does not match the dataset is refused, a damaged one
  // throws errors::DataLoss.
  Dataset cache(const std::string& filename = "",
                Site site = Site::here()) const;
  // Writes the elements of the first complete iteration into `path`, a folder,
  // and reads them from there in later ones and in other processes. A file with
  // a wrong checksum throws errors::DataLoss, or is made again.
  Dataset snapshot(const std::string& path, const SnapshotOptions& options = {},
                   Site site = Site::here()) const;
  // Asserts that there are `expected` elements, possibly kInfinite; next()
  // throws errors::FailedPrecondition if there are more or fewer.
  Dataset assert_cardinality(int64_t expected, Site site = Site::here()) const;

  // Computes up to `buffer_size` elements ahead on a separate thread. 0 does
  // nothing; AUTOTUNE starts with 2 and doubles while the reader waits, as far
  // as config::set_host_memory_budget() allows.
  Dataset prefetch(int64_t buffer_size, Site site = Site::here()) const;

  // Copies each element to `device` ("/GPU:0"); text stays on the host. Copies
  // of an element overlap with the computation of the next ones, and readers
  // wait for them (tf.data.experimental.copy_to_device). Throws
  // errors::InvalidArgument if the device does not exist.
  Dataset copy_to_device(const std::string& device,
                         Site site = Site::here()) const;
  // copy_to_device, then prefetch: this many elements are on the device, or
  // being copied, in advance. Must be the last transform of a chain
  // (tf.data.experimental.prefetch_to_device).
  Dataset prefetch_to_device(const std::string& device,
                             int64_t buffer_size = AUTOTUNE,
                             Site site = Site::here()) const;

  // The number of elements, kInfinite or kUnknown.
  int64_t cardinality() const;
  // One spec per component; dimensions that vary are unknown. After map this
  // computes the first element, once; empty if there is none.
  const std::vector<TensorSpec>& element_spec() const;
  // The names of the components, in order; empty if they have none. May compute
  // the first element, as element_spec() does.
  Names component_names() const;

  // Returns the chain as text, one line per transform, the last first:
  // AUTOTUNE's choices with reasons, elements, waits, bytes; all passes
  // together.
  std::string explain() const;

  Iterator make_iterator() const;

  // for (const Tensors& element : dataset), or const data::Element&: the
  // element is valid until the next iteration. Inside a scope of a device other
  // than the CPU this is reported ("dataset-in-device-scope"): the pipeline
  // runs on the host.
  class iterator;
  iterator begin(Site site = Site::here()) const;
  std::default_sentinel_t end() const { return {}; }

  // Implementation handle.
  explicit Dataset(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  const Node& node() const { return *node_; }

 private:
  Dataset map_named(NamedMapFunction fn, const MapOptions& options,
                    Site site) const;
  Dataset filter_named(NamedPredicate keep, Site site) const;
  std::shared_ptr<const Node> node_;
};

class Dataset::iterator {
 public:
  using value_type = Element;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  const Element& operator*() const { return element_; }
  const Element* operator->() const { return &element_; }
  iterator& operator++() {
    done_ = !source_.next_named(element_);
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return done_; }

 private:
  friend class Dataset;
  explicit iterator(Iterator source) : source_(std::move(source)) { ++*this; }
  Iterator source_;
  Element element_;
  bool done_ = false;
};

// The result of window(): datasets. Any thread.
class Windows {
 public:
  // Continues with the elements of fn(window), window by window.
  Dataset flat_map(std::function<Dataset(const Dataset& window)> fn,
                   Site site = Site::here()) const;
  // Each window as one element: its elements stacked.
  Dataset batch(Site site = Site::here()) const;
  // The number of windows, kInfinite or kUnknown.
  int64_t cardinality() const;

 private:
  friend class Dataset;
  Windows(Dataset parent, int64_t size, const WindowOptions& options)
      : parent_(std::move(parent)), size_(size), options_(options) {}
  Dataset parent_;
  int64_t size_;
  WindowOptions options_;
};

// Returns the rows of a ragged batch, padded: values [sum of lengths, ...] and
// row_splits int64 [n + 1] give [n, longest, ...], with `default_value` (a
// scalar; absent: 0, false or "") at the end of shorter rows.
Tensor ragged_to_tensor(const Tensor& values, const Tensor& row_splits,
                        const Tensor& default_value = {},
                        Site site = Site::here());

}  // namespace berth::data

#endif  // BERTH_DATA_H_
