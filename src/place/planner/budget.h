// Budget: how much a search may do, in seconds or in moves.
//
// A budget in moves is split into kStreams equal parts, each with its own
// random stream: the result depends only on seed and budget, not on the machine
// or the number of threads. A budget in seconds runs as many streams as there
// are threads, until time is up. Thread-safe.

#ifndef BERTH_PLACE_PLANNER_BUDGET_H_
#define BERTH_PLACE_PLANNER_BUDGET_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace berth {

class Budget {
 public:
  static constexpr int kStreams = 8;

  // Time runs from here.
  static Budget of_seconds(double seconds, int threads);
  static Budget of_moves(int64_t moves, int threads);

  bool counts_moves() const { return moves_ > 0; }
  int threads() const { return threads_; }
  int num_streams() const { return counts_moves() ? kStreams : threads_; }
  int64_t moves_per_stream() const;  // in seconds: no limit
  double seconds_left() const;       // in moves: no limit

  // The share of its budget, from 0, that a stream has spent after `moves`
  // moves; it stops at 1. Call it every few moves: it may read the clock.
  double spent(int64_t moves) const;

  // States that no plan is better than this value: searches end when they reach
  // it. Copies and parts of this budget see it, at any time.
  void set_enough(double value) { *enough_ = value; }
  bool enough(double value) const {
    return value <= enough_->load(std::memory_order_relaxed);
  }

  // The part of this budget from share `begin` to share `end`, as a separate
  // budget: stages of a search. In seconds it begins now.
  Budget part(double begin, double end) const;

 private:
  Budget() = default;
  int64_t moves_ = 0;  // of all streams
  double seconds_ = 0;
  std::chrono::steady_clock::time_point begin_;
  int threads_ = 1;
  std::shared_ptr<std::atomic<double>> enough_ =
      std::make_shared<std::atomic<double>>(-1.0);
};

// xoshiro256**, seeded by splitmix64 from (seed, stream): the same numbers on
// every machine.
class StreamRandom {
 public:
  StreamRandom(uint64_t seed, uint64_t stream);
  uint64_t next();
  // Uniform in 0 to n - 1; n > 0. (Lemire's multiplication; its bias of n/2^32
  // does not matter to a search.)
  uint32_t below(size_t n) {
    return static_cast<uint32_t>((next() >> 32) * n >> 32);
  }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Puts a list into an order of which all are equally likely.
  void shuffle(std::span<int32_t> list) {
    for (size_t k = list.size(); k > 1; --k) {
      std::swap(list[k - 1], list[below(k)]);
    }
  }

 private:
  uint64_t state_[4];
};

// Calls fn(stream) for streams 0 to count - 1 on up to `threads` threads,
// including the calling one. Rethrows the exception of the lowest stream.
void run_streams(int count, int threads, const std::function<void(int)>& fn);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_BUDGET_H_
