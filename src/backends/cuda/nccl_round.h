// NcclRound: one sum between cards, and its outcome.
//
// When all members are set it goes to NcclSums; its queues check it as an
// alarm. Members do not change after that; any thread may ask for the state.

#ifndef BERTH_BACKENDS_CUDA_NCCL_ROUND_H_
#define BERTH_BACKENDS_CUDA_NCCL_ROUND_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/cuda_card.h"
#include "backends/cuda/nccl_api.h"
#include "backends/cuda/queue_alarm.h"
#include "berth/errors.h"

namespace berth::cuda {

// An event of a card, taken from NcclSums and returned to it.
class NcclEvent {
 public:
  NcclEvent() = default;
  explicit NcclEvent(CudaCard& card);
  ~NcclEvent();
  NcclEvent(NcclEvent&& o) noexcept { *this = std::move(o); }
  NcclEvent& operator=(NcclEvent&& o) noexcept {
    std::swap(card_, o.card_);
    std::swap(event_, o.event_);
    return *this;
  }
  CUevent get() const { return event_; }

 private:
  CudaCard* card_ = nullptr;
  CUevent event_ = nullptr;
};

struct NcclMember {
  CudaCard* card = nullptr;  // null: not arrived
  std::string device;        // "GPU:0"
  void* data = nullptr;      // receives the sum
  NcclEvent begin;           // when `data` is ready
  NcclEvent end;             // when it is the sum; recorded once issued
};

class NcclRound final : public QueueAlarm {
 public:
  enum class State : int { kQueued, kIssued, kDone, kFailed, kGivenUp };

  std::string what;                 // name in the program
  std::vector<NcclMember> members;  // by rank
  size_t count = 0;
  NcclType type = kNcclFloat32;
  double timeout_seconds = 0;

  // "the sum step/gradients of GPU:0 and GPU:1 by NCCL"
  std::string text() const;

  State state() const { return state_.load(std::memory_order_acquire); }
  bool failed() const { return state() >= State::kFailed; }
  void check(bool passed) const override {
    if (given_up() || (passed && failed())) raise();
  }
  bool given_up() const override { return state() == State::kGivenUp; }
  // Throws the error with which it failed.
  [[noreturn]] void raise() const;

 private:
  friend class NcclSums;  // it serialises changes of the state
  void set(State state) { state_.store(state, std::memory_order_release); }
  std::atomic<State> state_{State::kQueued};
  errors::Code code_ = errors::Code::kInternal;  // valid after a failure
  std::string why_;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_ROUND_H_
