// FailureLog: which entries of an asynchronous stream failed, and why.
//
// Entries are numbered from 1. A failure poisons the stream: all later
// entries end as failed until reset(); what failed stays failed. The owner
// guards it.

#ifndef BERTH_DEVICE_FAILURE_LOG_H_
#define BERTH_DEVICE_FAILURE_LOG_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/errors.h"
#include "device/stream.h"

namespace berth {

struct Failure {
  errors::Code code;
  std::string message;
};
using FailureRef = std::shared_ptr<const Failure>;

// Returns a failure "<what> failed on GPU:0 (file:line): <why>; ..." that says
// how the device takes work again, if it may.
FailureRef make_failure(errors::Code code, const Device& device,
                        const Work& work, std::string_view why);

// Runs `work` of `stream`; returns what it threw, or null.
FailureRef run_work(const Work& work, Stream& stream);

class FailureLog {
 public:
  // Entry `sequence` ended with `failure`; kept unless poisoned already.
  void add(uint64_t sequence, FailureRef failure);
  // The last entry so far is `last`; later ones may succeed again.
  void reset(uint64_t last);
  bool poisoned() const { return !ranges_.empty() && ranges_.back().last == 0; }
  // Why entry `sequence` failed; null when it did not.
  FailureRef at(uint64_t sequence) const;

 private:
  // Entries first..last ended as failed; last 0: still going on.
  struct Range {
    uint64_t first, last;
    FailureRef failure;
  };
  std::vector<Range> ranges_;
};

}  // namespace berth

#endif  // BERTH_DEVICE_FAILURE_LOG_H_
