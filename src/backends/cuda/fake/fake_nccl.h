// A libnccl.so.2 for tests, over the fake driver: communicators of one process
// that really add, rules that are checked, and failures on request.
//
// BERTH_FAKE_NCCL, or begin(), says what it is like, separated by commas:
//   version=22809              as ncclGetVersion says it; 22809
//   later=3                    calls are under way when asked so often; 0
//   fail=ncclAllReduce@3:1     the third call returns 1
//   async=2:6                  the second sum never ends; its communicators
//                              report 6
//   hang=init                  communicators stay under way
//   hang=call                  so they do after ncclAllReduce
//   hang=sum                   sums never end
//   hang=abort                 ncclCommAbort does not return, nor stop them
//   hang=ncclGroupEnd          the call does not return
// Hangs last until the next begin(). What is against the rules returns an
// error and is counted: a communicator used by two threads at once or after it
// was aborted, other counts, dtypes or order on other ranks, one GPU twice,
// memory that is not the GPU's own, calls without the GPU's context.
// Thread-safe, as NCCL itself is not.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_NCCL_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_NCCL_H_

namespace berth::cuda {

// The symbol `berth_fake_nccl` of the library.
struct FakeNccl {
  // Starts anew with this description: counts are 0; what hangs goes on.
  void (*begin)(const char* description);
  // Calls of a function so far.
  long (*calls)(const char* name);
  // Sums that all ranks have come to.
  long (*sums)();
  // What was against the rules, a line each; "": nothing.
  const char* (*violations)();
  // Communicators that live.
  long (*communicators)();
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_NCCL_H_
