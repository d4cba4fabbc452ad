// NcclRound: one sum between cards, and what became of it.
//
// Whoever has all members hands it to NcclSums; its queues look at it as at an
// alarm. Members are set before that; any thread may ask for the state.

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

// An event of a card, from NcclSums and back to it.
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
  CudaCard* card = nullptr;  // null: it has not come
  std::string device;        // "GPU:0"
  void* data = nullptr;      // becomes the sum
  NcclEvent begin;           // when `data` is there
  NcclEvent end;             // when it is the sum; recorded once it is issued
};

class NcclRound final : public QueueAlarm {
 public:
  enum class State : int { kQueued, kIssued, kDone, kFailed, kGivenUp };

  std::string what;                 // of the program
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
  // Throws what it failed with.
  [[noreturn]] void raise() const;

 private:
  friend class NcclSums;  // which lets one thread at a time set the state
  void set(State state) { state_.store(state, std::memory_order_release); }
  std::atomic<State> state_{State::kQueued};
  errors::Code code_ = errors::Code::kInternal;  // once it has failed
  std::string why_;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_ROUND_H_
