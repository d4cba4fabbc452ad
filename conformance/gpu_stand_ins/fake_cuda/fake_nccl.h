// A fake libnccl.so.2 for tests, over the fake driver: communicators of one
// process that really add, checked rules, and failures on request.
//
// BERTH_FAKE_NCCL, or begin(), configures it, separated by commas:
//   version=22809              as ncclGetVersion returns it; 22809
//   later=3                    calls are done after so many queries; 0
//   fail=ncclAllReduce@3:1     the third call returns 1
//   async=2:6                  the second sum never ends; its communicators
//                              report 6
//   hang=init                  communicators are never ready
//   hang=call                  nor are they after ncclAllReduce
//   hang=sum                   sums never end
//   hang=abort                 ncclCommAbort neither returns nor stops them
//   hang=ncclGroupEnd          the call does not return
// Hangs last until the next begin(). A violation of the rules returns an error
// and is counted: a communicator used by two threads at once or after it was
// aborted; counts, dtypes or order that differ between ranks; one GPU twice;
// memory of another GPU; calls without the GPU's context. Thread-safe, unlike
// NCCL itself.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_NCCL_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_NCCL_H_

namespace berth::cuda {

// The symbol `berth_fake_nccl` of the library.
struct FakeNccl {
  // Restarts with this description: counts are 0, but what hangs goes on.
  void (*begin)(const char* description);
  // Returns the calls of a function so far.
  long (*calls)(const char* name);
  // Returns the number of sums that all ranks have joined.
  long (*sums)();
  // Returns the rule violations, one per line; "": none.
  const char* (*violations)();
  // Returns the number of live communicators.
  long (*communicators)();
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_NCCL_H_
