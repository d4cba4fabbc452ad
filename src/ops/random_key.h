// What makes the numbers of one random call its own.

#ifndef BERTH_OPS_RANDOM_KEY_H_
#define BERTH_OPS_RANDOM_KEY_H_

#include <cstdint>
#include <optional>

namespace berth {

struct RandomKey {
  int64_t seed = 0;
  int64_t op_id = 0;
};

// Returns the key of the next random call of the process: its seed, into
// which `own` is mixed, and the number of the call since random::set_seed().
// Thread-safe.
RandomKey next_random_key(std::optional<int64_t> own);

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

}  // namespace berth

#endif  // BERTH_OPS_RANDOM_KEY_H_
