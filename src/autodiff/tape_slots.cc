#include "autodiff/tape_slots.h"

#include <array>
#include <atomic>

namespace berth {

namespace {

// Cell serial % kCells holds the serial while its tape lives, else 0. A tape
// takes a serial whose cell is free, so two live tapes never share a cell.
constexpr uint64_t kCells = 4096;
std::array<std::atomic<uint64_t>, kCells> g_live{};
std::atomic<uint64_t> g_next{1};

uint64_t claim_serial() {
  for (;;) {
    const uint64_t serial = g_next.fetch_add(1) & 0xffffffffu;
    if (serial == 0) continue;
    uint64_t free = 0;
    if (g_live[serial % kCells].compare_exchange_strong(free, serial)) {
      return serial;
    }
  }
}

}  // namespace

TapeSlots::TapeSlots() : serial_(claim_serial()) {}
TapeSlots::~TapeSlots() { end(); }

void TapeSlots::end() {
  if (ended()) return;
  g_live[serial_ % kCells].store(0);
  serial_ = 0;
  overflow_.clear();
}

bool TapeSlots::live(uint64_t serial) {
  return g_live[serial % kCells].load() == serial;
}

void TapeSlots::set(TensorImpl* t, int32_t number) {
  const uint64_t mine = serial_ << 32 | static_cast<uint32_t>(number);
  uint64_t slot = t->tape_slot.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t owner = slot >> 32;
    if (owner != 0 && owner != serial_ && live(owner)) {
      overflow_[t] = number;
      return;
    }
    if (t->tape_slot.compare_exchange_weak(slot, mine,
                                           std::memory_order_relaxed)) {
      return;
    }
  }
}

}  // namespace berth
