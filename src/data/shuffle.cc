#include <fmt/format.h>

#include <atomic>
#include <random>

#include "base/rng.h"
#include "data/node.h"

namespace berth::data {

namespace {

// Marks the words of this room among those of other users of a seed.
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

template <class T>
class ShuffleStream : public Stream<T> {
 public:
  ShuffleStream(std::unique_ptr<Stream<T>> source, int64_t buffer_size,
                Draws draws, std::stop_token stop)
      : source_(std::move(source)),
        size_(static_cast<size_t>(buffer_size)),
        draws_(draws),
        stop_(std::move(stop)) {}

  bool next(T* out) override {
    fill();
    if (buffer_.empty() || stop_.stop_requested()) return false;
    hole_ = draws_.below(buffer_.size());
    std::swap(*out, buffer_[hole_]);
    return true;
  }

 private:
  // Fills the whole buffer, later the place of what was handed out last.
  void fill() {
    if (started_ && hole_ < buffer_.size()) {
      if (source_ && source_->next(&buffer_[hole_])) return;
      source_.reset();
      std::swap(buffer_[hole_], buffer_.back());
      buffer_.pop_back();
    }
    if (started_) return;
    started_ = true;
    T value{};
    while (buffer_.size() < size_ && !stop_.stop_requested()) {
      if (!source_->next(&value)) {
        source_.reset();
        return;
      }
      buffer_.push_back(std::move(value));
      value = T{};
    }
  }

  std::unique_ptr<Stream<T>> source_;  // null at its end
  size_t size_;
  Draws draws_;
  std::stop_token stop_;
  std::vector<T> buffer_;
  size_t hole_ = 0;
  bool started_ = false;
};

class ShuffleNode : public Selection<ShuffleNode> {
 public:
  ShuffleNode(const Dataset& parent, int64_t buffer_size,
              const ShuffleOptions& options, Site site)
      : Selection("shuffle", site, parent),
        buffer_size_(buffer_size),
        seed_(options.seed ? *options.seed : any_seed()),
        reshuffle_(options.reshuffle_each_iteration) {}

  template <class T>
  std::unique_ptr<Stream<T>> stream(const Pass& pass) const {
    uint64_t number = 0;
    if (reshuffle_) {
      number = pass.peek ? passes_.load() : passes_.fetch_add(1);
    }
    return std::make_unique<ShuffleStream<T>>(data::open<T>(parent(), pass),
                                              buffer_size_,
                                              Draws(seed_, number), pass.stop);
  }

 private:
  static uint64_t any_seed() {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }

  int64_t buffer_size_;
  uint64_t seed_;
  bool reshuffle_;
  mutable std::atomic<uint64_t> passes_{0};
};

}  // namespace

Dataset Dataset::shuffle(int64_t buffer_size, const ShuffleOptions& options,
                         Site site) const {
  if (buffer_size == AUTOTUNE) {
    refuse(fmt::format("shuffle ({}:{})", site.file, site.line),
           "buffer_size is AUTOTUNE; expected a number of elements, at least 1 "
           "(that of the dataset shuffles uniformly): AUTOTUNE is for prefetch "
           "and for map's num_parallel_calls");
  }
  if (buffer_size < 1) {
    refuse(fmt::format("shuffle ({}:{})", site.file, site.line),
           fmt::format("buffer_size is {}; expected at least 1 (the number of "
                       "elements shuffles uniformly)",
                       buffer_size));
  }
  return make_dataset<ShuffleNode>(*this, buffer_size, options, site);
}

}  // namespace berth::data
