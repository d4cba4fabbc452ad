// Dataset::shuffle.

#include <fmt/format.h>

#include "base/rng.h"
#include "base/where.h"
#include "data/pass_state.h"
#include "data/seeded_passes.h"

namespace berth::data {

namespace {

// Marks the words of this module among those of other users of a seed.
constexpr uint32_t kShuffleOp = 0x5F0FF1E5u;

// Uniform whole numbers of one pass.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t pass) : words_(seed, kShuffleOp, pass) {}

  // Returns a number in [0, n), all equally likely (Lemire, "Fast Random
  // Integer Generation in an Interval", 2019).
  uint64_t below(uint64_t n) {
    using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(word()) * n;
    if (static_cast<uint64_t>(product) < n) {
      const uint64_t biased = (0 - n) % n;
      while (static_cast<uint64_t>(product) < biased) {
        product = static_cast<Wide>(word()) * n;
      }
    }
    return static_cast<uint64_t>(product >> 64);
  }

  uint64_t drawn() const { return at_; }
  void go_to(uint64_t at) {
    at_ = at;
    if (at_ % 2 != 0) block_ = words_.block(at_ / 2);
  }

 private:
  uint64_t word() {
    const int half = static_cast<int>(at_ % 2);
    if (half == 0) block_ = words_.block(at_ / 2);
    ++at_;
    return uint64_t{block_[2 * half]} << 32 | block_[2 * half + 1];
  }

  RandomStream words_;
  PhiloxBlock block_ = {};
  uint64_t at_ = 0;
};

class ShuffleNode : public Selection<ShuffleNode> {
 public:
  ShuffleNode(const Dataset& parent, int64_t buffer_size,
              const ShuffleOptions& options, Site site)
      : Selection("shuffle", site, parent),
        buffer_size_(static_cast<size_t>(buffer_size)),
        passes_(options.seed, options.reshuffle_each_iteration) {}

  template <class T>
  std::unique_ptr<PassStream<T>> stream(const PassInfo& pass) const;
  size_t buffer_size() const { return buffer_size_; }

  NodeMemory memory() const override { return passes_.memory(); }
  void set_memory(const NodeMemory& m) const override { passes_.set(m); }

 private:
  size_t buffer_size_;
  SeededPasses passes_;
};

template <class T>
class ShuffleStream : public PassStream<T> {
 public:
  ShuffleStream(const ShuffleNode* node, std::unique_ptr<PassStream<T>> source,
                NodeMemory pass, std::stop_token stop)
      : node_(node),
        source_(std::move(source)),
        pass_(pass),
        draws_(draws_of(pass)),
        stop_(std::move(stop)) {}

  bool next(T* out) override {
    fill();
    if (buffer_.empty() || stop_.stop_requested()) return false;
    hole_ = draws_.below(buffer_.size());
    std::swap(*out, buffer_[hole_]);
    return true;
  }

  void save(PassWriter& w) override {
    w.begin(*node_);
    w.put(pass_.passes);
    w.put(pass_.seed);
    w.put(draws_.drawn());
    w.put(started_);
    w.put(hole_);
    if (hole_ < buffer_.size()) buffer_[hole_] = T{};
    save_values(w, buffer_);
    save_source(w, source_);
  }

  void restore(PassReader& r) override {
    r.begin(*node_);
    pass_.passes = r.number();
    pass_.seed = r.number();
    draws_ = draws_of(pass_);
    draws_.go_to(r.word());
    started_ = r.flag();
    hole_ = static_cast<size_t>(r.number(0));
    restore_values(r, *node_, &buffer_);
    if (buffer_.size() > node_->buffer_size()) {
      r.damaged("its buffer is larger than that of this shuffle");
    }
    restore_source(r, &source_);
  }

 private:
  static Draws draws_of(const NodeMemory& pass) {
    return {static_cast<uint64_t>(pass.seed),
            static_cast<uint64_t>(pass.passes)};
  }

  // Fills the whole buffer, later the place of what was handed out last.
  void fill() {
    if (started_ && hole_ < buffer_.size()) {
      if (source_ && source_->next(&buffer_[hole_])) return;
      source_.reset();
      std::swap(buffer_[hole_], buffer_.back());
      buffer_.pop_back();
    }
    if (started_) return;
    T value{};
    while (buffer_.size() < node_->buffer_size() && !stopped(stop_)) {
      if (!source_->next(&value)) {
        source_.reset();
        break;
      }
      buffer_.push_back(std::move(value));
      value = T{};
    }
    started_ = true;
  }

  const ShuffleNode* node_;
  std::unique_ptr<PassStream<T>> source_;  // null at its end
  NodeMemory pass_;  // the number of this pass, and its seed
  Draws draws_;
  std::stop_token stop_;
  std::vector<T> buffer_;
  size_t hole_ = 0;
  bool started_ = false;
};

template <class T>
std::unique_ptr<PassStream<T>> ShuffleNode::stream(const PassInfo& pass) const {
  return std::make_unique<ShuffleStream<T>>(this, data::open<T>(parent(), pass),
                                            passes_.begin(pass), pass.stop);
}

}  // namespace

Dataset Dataset::shuffle(int64_t buffer_size, const ShuffleOptions& options,
                         Site site) const {
  if (buffer_size == AUTOTUNE) {
    refuse(call_text("shuffle", site),
           "buffer_size is AUTOTUNE; expected a number of elements, at least 1 "
           "(that of the dataset shuffles uniformly): AUTOTUNE is for prefetch "
           "and for map's num_parallel_calls");
  }
  if (buffer_size < 1) {
    refuse(call_text("shuffle", site),
           fmt::format("buffer_size is {}; expected at least 1 (the number of "
                       "elements shuffles uniformly)",
                       buffer_size));
  }
  return make_dataset<ShuffleNode>(*this, buffer_size, options, site);
}

}  // namespace berth::data
