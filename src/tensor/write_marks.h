// Write marks: which of the variables that a run writes it had begun to write
// when it failed. Only these are torn then; the others are as they were.
//
// The first write and the failure may come in either order: the second of them
// marks the variables torn. Thread-safe.

#ifndef BERTH_TENSOR_WRITE_MARKS_H_
#define BERTH_TENSOR_WRITE_MARKS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "berth/tensor.h"
#include "device/stream.h"
#include "tensor/variable_state.h"

namespace berth {

// Variables that must stay alike, a home and its mirrors, are marked together.
struct WriteMark {
  explicit WriteMark(std::vector<Tensor> handles)
      : handles(std::move(handles)) {}
  const std::vector<Tensor> handles;
  uint64_t writer = 0;  // the last that locked them, under their locks
  // The last writers that began to write, that failed.
  std::atomic<uint64_t> begun{0}, failed{0};
};
using WriteMarks = std::vector<std::shared_ptr<WriteMark>>;

// Returns the number of a new writer, which has locked the variables. What is
// torn already counts as begun: only a writer that succeeds mends it.
uint64_t lock_marks(const WriteMarks& marks);
// A warm call allocates nothing.
void begin_write(WriteMark& mark, uint64_t writer);
void fail_write(WriteMark& mark, uint64_t writer, const std::string& why);

// Returns what readers of a variable, which is not torn, wait for: nothing when
// its last writer failed before it began. The caller holds a lock.
Event ready_of(const VariableState& state);

// Launches a marker after work on `stream` that writes: when that work fails,
// or is skipped, the writer has failed.
void watch_marks(Stream& stream, std::shared_ptr<const WriteMarks> marks,
                 uint64_t writer, const char* what);

}  // namespace berth

#endif  // BERTH_TENSOR_WRITE_MARKS_H_
