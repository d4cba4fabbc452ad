#include "place/planner/budget.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <thread>
#include <vector>

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
  b.moves_ = std::max<int64_t>(moves, 1);
  return b;
}

int64_t Budget::moves_per_stream() const {
  if (!counts_moves()) return std::numeric_limits<int64_t>::max();
  return (moves_ + kStreams - 1) / kStreams;
}

double Budget::seconds_left() const {
  if (counts_moves()) return kInfinity;
  const std::chrono::duration<double> gone = Clock::now() - begin_;
  return std::max(seconds_ - gone.count(), 0.0);
}

double Budget::spent(int64_t moves) const {
  if (counts_moves()) {
    return static_cast<double>(moves) / static_cast<double>(moves_per_stream());
  }
  return seconds_ > 0 ? 1 - seconds_left() / seconds_ : 1;
}

Budget Budget::part(double begin, double end) const {
  // Seconds: until share `end` of the whole, however late earlier stages ended.
  Budget b = counts_moves()
                 ? of_moves(static_cast<int64_t>(static_cast<double>(moves_) *
                                                 std::max(end - begin, 0.0)),
                            threads_)
                 : of_seconds(seconds_left() - seconds_ * (1 - end), threads_);
  b.enough_ = enough_;
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

}  // namespace berth
