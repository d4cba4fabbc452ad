// What makes the numbers of one random call its own.

#ifndef BERTH_OPS_RANDOM_KEY_H_
#define BERTH_OPS_RANDOM_KEY_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace berth {

struct RandomKey {
  int64_t seed = 0;
  int64_t op_id = 0;
};

// Returns the key of the next random call of the process: its seed, into
// which `own` is mixed, and the number of the call since random::set_seed().
// Thread-safe.
RandomKey next_random_key(std::optional<int64_t> own);

// Returns a seed for what draws outside of tensors, as a shuffle: after
// random::set_seed() the next of those that follow from it, else none.
// Thread-safe.
std::optional<uint64_t> next_host_seed();

// What random calls of the process draw from next, and next_host_seed().
// Thread-safe.
struct RandomState {
  int64_t seed = 0;
  int64_t next_id = 0;
  int64_t next_host_seed = 0;
  int64_t seeded = 0;  // 1: by random::set_seed()
};
RandomState random_state();
void set_random_state(const RandomState& state);

// The numbers of the random calls of one trace, which make up what its step
// draws. With those of an earlier trace of the same step it gives them out
// again, and the process does not count them; calls beyond them count as ever.
// What is computed at once meanwhile, such as the first weights of a layer, has
// numbers apart: they need not be drawn again. One thread.
class TracedRandomIds {
 public:
  struct Ids {
    int64_t seed = 0;  // of the process
    std::vector<int64_t> ids, at_once;
  };

  explicit TracedRandomIds(std::optional<Ids> earlier);
  ~TracedRandomIds();
  TracedRandomIds(const TracedRandomIds&) = delete;
  TracedRandomIds& operator=(const TracedRandomIds&) = delete;

  const Ids& taken() const { return taken_; }

 private:
  friend RandomKey next_random_key(std::optional<int64_t> own);
  RandomKey take(std::optional<int64_t> own);

  TracedRandomIds* const outer_;
  const std::optional<Ids> earlier_;
  Ids taken_;
};

// Random calls of this thread do not count until the end of the block: what is
// traced here is not kept, and what comes afterwards draws as if it had not
// been.
class UncountedRandomKeys {
 public:
  UncountedRandomKeys();
  ~UncountedRandomKeys();
  UncountedRandomKeys(const UncountedRandomKeys&) = delete;
  UncountedRandomKeys& operator=(const UncountedRandomKeys&) = delete;

  uint32_t take() { return next_++; }

 private:
  UncountedRandomKeys* const outer_;
  uint32_t next_;
};

// Random calls of this thread draw numbers of their own until the end of the
// block, which follow from the process's seed and these three: an element of a
// dataset has the same ones whatever thread computes it.
class ElementRandomKeys {
 public:
  ElementRandomKeys(uint64_t place, uint64_t pass, uint64_t element);
  ~ElementRandomKeys();
  ElementRandomKeys(const ElementRandomKeys&) = delete;
  ElementRandomKeys& operator=(const ElementRandomKeys&) = delete;

  RandomKey take(int64_t seed);

 private:
  ElementRandomKeys* const outer_;
  uint64_t mixed_;
  uint32_t next_ = 0;
};

}  // namespace berth

#endif  // BERTH_OPS_RANDOM_KEY_H_
