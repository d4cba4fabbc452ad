#include "backends/cuda/nccl_meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "backends/cuda/nccl_sums.h"
#include "base/immortal.h"

namespace berth::cuda {

NcclMeeting& NcclMeeting::of_thread() { return of_this_thread<NcclMeeting>(); }

NcclMeeting::Group NcclMeeting::begin(const Call& call) {
  Group group;
  group.round = std::make_shared<NcclRound>();
  group.round->what = call.what;
  group.round->count = call.count;
  group.round->type = call.type;
  group.round->timeout_seconds = call.timeout_seconds;
  group.round->members.resize(static_cast<size_t>(call.ranks));
  group.arrivals.resize(static_cast<size_t>(call.ranks));
  return group;
}

void NcclMeeting::forget_strays(Group& group) {
  for (size_t r = 0; r < group.arrivals.size(); ++r) {
    Arrival& a = group.arrivals[r];
    if (a.stream == nullptr || a.stream->skipped() == a.skipped) continue;
    a = {};
    group.round->members[r] = {};
    --group.come;
  }
}

void NcclMeeting::come(const Call& call, int rank, NcclMember member,
                       const gpu::QueueStream& stream) {
  const auto r = static_cast<size_t>(rank);
  const auto [it, fresh] = groups_.try_emplace(call.group);
  Group& group = it->second;
  if (fresh || group.come == call.ranks ||
      group.arrivals[r].stream != nullptr) {
    group = begin(call);
  }
  forget_strays(group);
  NcclRound& round = *group.round;
  if (round.count != call.count || round.type != call.type ||
      round.members.size() != static_cast<size_t>(call.ranks)) {
    throw errors::Internal(
        fmt::format("{}: {} comes with {} elements, {} members", round.text(),
                    member.device, call.count, call.ranks));
  }
  round.members[r] = std::move(member);
  group.arrivals[r] = {&stream, stream.skipped()};
  if (++group.come < call.ranks) return;
  try {
    NcclSums::get().issue(group.round);
  } catch (const errors::Error&) {
    groups_.erase(it);
    throw;
  }
}

std::shared_ptr<NcclRound> NcclMeeting::leave(int64_t group, int rank) {
  const auto it = groups_.find(group);
  if (it == groups_.end()) {
    throw errors::Aborted("a sum by NCCL that has not begun");
  }
  const std::shared_ptr<NcclRound> round = it->second.round;
  const int ranks = static_cast<int>(round->members.size());
  if (it->second.come < ranks) {
    std::vector<int> missing;
    for (int r = 0; r < ranks; ++r) {
      if (it->second.arrivals[static_cast<size_t>(r)].stream == nullptr) {
        missing.push_back(r);
      }
    }
    groups_.erase(it);
    throw errors::Aborted(
        fmt::format("the sum {} by NCCL did not begin for rank {}, since what "
                    "came before it on rank {} failed",
                    round->what, rank, fmt::join(missing, ", ")));
  }
  if (++it->second.left == ranks) groups_.erase(it);
  return round;
}

}  // namespace berth::cuda
