#include "planner/budget.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <thread>
#include <utility>

#include "base/infinity.h"

namespace berth {

using Clock = std::chrono::steady_clock;

Budget Budget::of_seconds(double seconds, int threads) {
  Budget b;
  b.seconds_ = std::max(seconds, 0.0);
  b.threads_ = std::max(threads, 1);
  b.begin_ = Clock::now();
  return b;
}

Budget Budget::of_moves(int64_t moves, int threads) {
  Budget b = of_seconds(0, threads);
  b.timed_ = false;
  b.moves_ = (std::max<int64_t>(moves, 1) + kStreams - 1) / kStreams;
  return b;
}

double Budget::seconds_left() const {
  if (counts_moves()) return kInfinity;
  const std::chrono::duration<double> gone = Clock::now() - begin_;
  return std::max(seconds_ - gone.count(), 0.0);
}

double Budget::spent(int64_t moves) const {
  const double left = seconds_left();
  if (left <= 0) return 1;
  if (moves_ == kNoLimit) return 1 - left / seconds_;
  return static_cast<double>(moves) / static_cast<double>(moves_);
}

Budget Budget::part(double begin, double end) const {
  if (moves_ != kNoLimit) {
    return with_moves(std::llround(moves_ * (end - begin)));
  }
  // Until share `end` of the whole, however late earlier stages ended.
  Budget b = *this;
  b.seconds_ = std::max(seconds_left() - seconds_ * (1 - end), 0.0);
  b.begin_ = Clock::now();
  return b;
}

StreamRandom::StreamRandom(uint64_t seed, uint64_t stream) {
  uint64_t x = seed * 0x9E3779B97F4A7C15ULL + stream + 1;
  for (uint64_t& s : state_) {  // splitmix64
    x += 0x9E3779B97F4A7C15ULL;
    uint64_t z = x;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
    s = z ^ z >> 31;
  }
}

uint64_t StreamRandom::next() {
  const auto rotate = [](uint64_t v, int by) {
    return v << by | v >> (64 - by);
  };
  const uint64_t result = rotate(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate(state_[3], 45);
  return result;
}

void run_streams(int count, int threads, const std::function<void(int)>& fn) {
  std::atomic<int> next = 0;
  std::vector<std::exception_ptr> failed(count);
  const auto work = [&] {
    for (int s = next++; s < count; s = next++) {
      try {
        fn(s);
      } catch (...) {
        failed[s] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> helpers;
  for (int t = 1; t < std::min(threads, count); ++t) helpers.emplace_back(work);
  work();
  helpers.clear();
  for (const std::exception_ptr& e : failed) {
    if (e) std::rethrow_exception(e);
  }
}

SearchSeries::SearchSeries(const Budget& whole, int64_t first, uint64_t seed)
    : whole_(whole), budget_(whole), end_(first << last_) {
  if (whole.counts_moves()) {
    end_ = whole.moves_per_stream();
    const uint64_t parts = end_ * Budget::kStreams / Budget::kWholeMoves;
    last_ = std::max<int>(std::bit_width(parts) - 1, 0);
  }
  for (int k = 0; k < whole.num_streams(); ++k) {
    streams_.emplace_back(budget_, seed, k);
  }
}

bool SearchSeries::next(double found) {
  const bool over = whole_.enough(found) || whole_.spent(0) >= 1;
  if (number_ == last_ || (over && number_ >= 0)) return false;
  ++number_;
  const int64_t until = -(-end_ >> (last_ - number_));  // rounded up
  budget_ = whole_.with_moves(until - std::exchange(until_, until));
  for (SearchStream& s : streams_) sum_ += std::exchange(s.moves_, 0);
  return true;
}

void SearchSeries::run(const std::function<void(SearchStream&)>& fn) {
  run_streams(std::ssize(streams_), whole_.threads(),
              [&](int k) { fn(streams_[k]); });
}

int64_t SearchSeries::moves() const {
  int64_t sum = sum_;
  for (const SearchStream& s : streams_) sum += s.moves();
  return sum;
}

}  // namespace berth
