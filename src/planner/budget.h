// Budget: how much a search may do, in seconds or in moves.
//
// A budget in moves is split into kStreams equal parts, each with its own
// random stream: the result depends only on seed and budget, not on the machine
// or the number of threads. A budget in seconds runs as many streams as there
// are threads, until time is up. Budgets are thread-safe.

#ifndef BERTH_PLANNER_BUDGET_H_
#define BERTH_PLANNER_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace berth {

class Budget {
 public:
  static constexpr int kStreams = 8, kWholeMoves = 500;

  // Time runs from here.
  static Budget of_seconds(double seconds, int threads);
  static Budget of_moves(int64_t moves, int threads);

  bool counts_moves() const { return !timed_; }
  int threads() const { return threads_; }
  int num_streams() const { return counts_moves() ? kStreams : threads_; }
  int64_t moves_per_stream() const { return moves_; }  // may be no limit
  double seconds_left() const;                         // in moves: no limit

  // The share of its budget, from 0, that a stream has spent after `moves`
  // moves; it stops at 1. If moves and time are limited, the share of moves, or
  // 1 when time is up. Call it every few moves: it may read the clock.
  double spent(int64_t moves) const;

  // States that no plan is better than this value: searches end when they reach
  // it. Copies and parts of this budget see it, at any time.
  void set_enough(double value) { *enough_ = value; }
  bool enough(double value) const {
    return value <= enough_->load(std::memory_order_relaxed);
  }

  // The part of this budget from share `begin` to share `end`, as a separate
  // budget: stages of a search. In seconds it begins now, unless moves are
  // limited: then it has a share of them and all the time.
  Budget part(double begin, double end) const;
  // This budget's time, so many moves per stream.
  Budget with_moves(int64_t moves) const {
    Budget b = *this;
    b.moves_ = std::max<int64_t>(moves, 1);
    return b;
  }

 private:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  Budget() = default;
  int64_t moves_ = kNoLimit;  // per stream
  bool timed_ = true;
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
  uint32_t below(size_t n) { return (next() >> 32) * n >> 32; }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_[4];
};

// Calls fn(stream) for streams 0 to count - 1 on up to `threads` threads,
// including the calling one. Rethrows the exception of the lowest stream.
void run_streams(int count, int threads, const std::function<void(int)>& fn);

// One stream of a search: its random numbers and how much of its budget it has
// spent. What it finds depends on nothing else. One thread.
class SearchStream {
 public:
  SearchStream(const Budget& budget, uint64_t seed, int number)
      : random(seed, number), number_(number), budget_(budget) {}

  StreamRandom random;

  int number() const { return number_; }
  int64_t moves() const { return moves_; }
  int64_t moves_left() const { return budget_.moves_per_stream() - moves_; }
  // The share of the budget, after so many more moves. 1 or more: stop.
  double spent(int64_t more = 0) const { return budget_.spent(moves_ + more); }
  bool enough(double value) const { return budget_.enough(value); }
  // Takes up to `wanted` moves from the budget; returns how many.
  int64_t take(int64_t wanted) {
    wanted = std::min(wanted, moves_left());
    moves_ += wanted;
    return wanted;
  }

 private:
  friend class SearchSeries;
  int number_;
  const Budget& budget_;
  int64_t moves_ = 0;
};

// A series of searches, each with as many moves as those before it together,
// and beginning with what they found. More moves do what fewer do and then go
// on, so the result is never worse. Seconds decide where the series is cut off:
// twice the moves are not worse then either, except that a pipeline's last
// search evaluates other cuts.
class SearchSeries {
 public:
  // `first`: moves per stream of the first search if the budget is in seconds.
  // One in moves is halved for as long as kWholeMoves of all streams are left.
  SearchSeries(const Budget& whole, int64_t first, uint64_t seed);
  SearchSeries(const SearchSeries&) = delete;

  // Begins the first search, or the next one if budget is left and the value
  // found so far is not enough. Returns whether it did.
  bool next(double found);
  int number() const { return number_; }            // of the search, from 0
  const Budget& budget() const { return budget_; }  // and what it may do
  std::vector<SearchStream>& streams() { return streams_; }
  void run(const std::function<void(SearchStream&)>& fn);  // in parallel
  int64_t moves() const;                                   // of all searches

 private:
  const Budget whole_;
  Budget budget_;
  int number_ = -1, last_ = 30;  // seconds end before the last search
  int64_t end_, until_ = 0;  // moves per stream: of all searches, until this
  int64_t sum_ = 0;          // of all streams, in earlier searches
  std::vector<SearchStream> streams_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_BUDGET_H_
