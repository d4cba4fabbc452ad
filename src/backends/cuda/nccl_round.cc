#include "backends/cuda/nccl_round.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/cuda/nccl_sums.h"

namespace berth::cuda {

NcclEvent::NcclEvent(CudaCard& card)
    : card_(&card), event_(NcclSums::get().take_event(card)) {}

NcclEvent::~NcclEvent() {
  if (event_ != nullptr) NcclSums::get().give_back(*card_, event_);
}

std::string NcclRound::text() const {
  std::vector<std::string> devices;
  for (const NcclMember& m : members) devices.push_back(m.device);
  return fmt::format("the sum of {} by NCCL ({} elements of {})",
                     fmt::join(devices, ", "), count, what);
}

void NcclRound::raise() const {
  if (!given_up()) errors::raise(code_, why_);
  throw errors::Unavailable(fmt::format(
      "{}; NCCL was told to stop it and has not: the device is closed until "
      "the process ends",
      why_));
}

}  // namespace berth::cuda
