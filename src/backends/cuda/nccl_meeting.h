// NcclMeeting: where the members of a sum meet that one thread launches.
//
// A thread launches all devices of a program, and its steps in one order. So
// who comes twice, and whoever was followed by skipped work of its stream, was
// of a run that did not get to its end. Each thread has a meeting of its own.

#ifndef BERTH_BACKENDS_CUDA_NCCL_MEETING_H_
#define BERTH_BACKENDS_CUDA_NCCL_MEETING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "backends/cuda/nccl_round.h"
#include "backends/gpu/queue_stream.h"

namespace berth::cuda {

class NcclMeeting {
 public:
  static NcclMeeting& of_thread();

  // What all members say of their sum.
  struct Call {
    int64_t group = 0;  // which sum of the process's programs it is
    int ranks = 0;
    std::string what;
    size_t count = 0;
    NcclType type = kNcclFloat32;
    double timeout_seconds = 0;
  };

  // A member comes, whose stream is `stream`. The last one issues the sum.
  // Throws errors::InvalidArgument when two are on one card,
  // errors::Internal when they do not say the same.
  void come(const Call& call, int rank, NcclMember member,
            const gpu::QueueStream& stream);
  // The sum that `rank` has come to; the last who asks ends the meeting. Throws
  // errors::Aborted when not all have come.
  std::shared_ptr<NcclRound> leave(int64_t group, int rank);

 private:
  struct Arrival {
    const gpu::QueueStream* stream = nullptr;
    uint64_t skipped = 0;  // of the stream, then
  };
  struct Group {
    std::shared_ptr<NcclRound> round;
    std::vector<Arrival> arrivals;  // by rank
    int come = 0, left = 0;
  };

  static Group begin(const Call& call);
  static void forget_strays(Group& group);

  std::map<int64_t, Group> groups_;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_MEETING_H_
