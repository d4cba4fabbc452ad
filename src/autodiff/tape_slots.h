// TapeSlots: finds the value number that a tape gave to a tensor.
//
// The first live tape that sees a tensor stores (serial, number) inside the
// tensor, so that a lookup is one load; further tapes use a map. A serial is
// live while its tape exists; slots of dead tapes are taken over. The slot is
// atomic: a tensor may be watched by tapes of several threads.

#ifndef BERTH_AUTODIFF_TAPE_SLOTS_H_
#define BERTH_AUTODIFF_TAPE_SLOTS_H_

#include <cstdint>
#include <unordered_map>

#include "tensor/tensor_impl.h"

namespace berth {

class TapeSlots {
 public:
  TapeSlots();
  ~TapeSlots();
  TapeSlots(const TapeSlots&) = delete;
  TapeSlots& operator=(const TapeSlots&) = delete;

  // Returns the number, or -1. The caller keeps the tensor alive as long as
  // the tape knows it.
  int32_t find(const TensorImpl* t) const {
    const uint64_t slot = t->tape_slot.load(std::memory_order_relaxed);
    if (slot >> 32 == serial_) return static_cast<int32_t>(slot);
    if (overflow_.empty()) [[likely]]
      return -1;
    const auto it = overflow_.find(t);
    return it == overflow_.end() ? -1 : it->second;
  }
  void set(TensorImpl* t, int32_t number);

  // Forgets all numbers, for good: set() and find() must not be called again.
  void end();
  bool ended() const { return serial_ == 0; }

 private:
  static bool live(uint64_t serial);
  uint64_t serial_;
  std::unordered_map<const TensorImpl*, int32_t> overflow_;
};

}  // namespace berth

#endif  // BERTH_AUTODIFF_TAPE_SLOTS_H_
