// NcclMeeting: where the members of a sum meet that one thread launches.
//
// One thread launches all devices of a program, and its steps in one order. So
// a member that arrives twice, or whose stream has skipped work since, belongs
// to a run that did not reach its end. Each thread has its own meeting.

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

  // The values on which all members must agree.
  struct Call {
    int64_t group = 0;  // number of the sum among the process's programs
    int ranks = 0;
    std::string what;
    size_t count = 0;
    NcclType type = kNcclFloat32;
    double timeout_seconds = 0;
  };

  // Registers a member on `stream`. The last one issues the sum. Throws
  // errors::InvalidArgument when two are on one card, errors::Internal when
  // their calls differ.
  void come(const Call& call, int rank, NcclMember member,
            const gpu::QueueStream& stream);
  // Returns the sum that `rank` joined; the last caller ends the meeting.
  // Throws errors::Aborted when members are missing.
  std::shared_ptr<NcclRound> leave(int64_t group, int rank);

 private:
  struct Arrival {
    const gpu::QueueStream* stream = nullptr;
    uint64_t skipped = 0;  // of the stream, on arrival
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
