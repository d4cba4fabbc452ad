// ArenaGuard: under AddressSanitizer, poisons what is dead in host arenas.
//
// A buffer's range is open from its first writer to the end of its life in
// every run; between runs, and while an arena lies in the pool, all of it is
// poisoned. Other builds do none of this. One guard per runner, immutable; the
// cursor of a run is in its ProgramRun.

#ifndef BERTH_EXEC_ARENA_GUARD_H_
#define BERTH_EXEC_ARENA_GUARD_H_

#include <cstdint>
#include <vector>

#include "base/poison.h"
#include "program/program_run.h"

namespace berth {

class ArenaGuard {
 public:
  // Notes the lives of the buffers whose arena the host may touch.
  explicit ArenaGuard(const Program& program);

  // Brings the arenas of `run` to what is alive at `step`. Call it in the
  // order of steps, once what `step` waits for is done, for steps of the host
  // alone: a life ends where the host may write again, and asynchronous
  // readers need not have run before another device's step is launched.
  void before(ProgramRun& run, int32_t step) const;

 private:
  struct Change {
    int32_t step;
    bool begins;
    int device;
    size_t offset, bytes;
  };
  std::vector<Change> changes_;  // by step; ends come first
};

}  // namespace berth

#endif  // BERTH_EXEC_ARENA_GUARD_H_
