#include "conformance/gpu_stand_ins/host_card/item_runner.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <numeric>
#include <utility>

#include "berth/errors.h"
#include "conformance/gpu_stand_ins/host_card/race_watch.h"

// berth_host_switch(save, to) saves the callee-saved registers on this stack
// and its address in *save, and restores the registers of the stack `to`.
asm(R"(
  .text
  .p2align 4
  .type berth_host_switch, @function
berth_host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size berth_host_switch, . - berth_host_switch
)");
extern "C" void berth_host_switch(void** save, void* to);

namespace berth::gpu {

namespace {

constexpr size_t kStackBytes = size_t{128} << 10;
constexpr size_t kGuardBytes = 4096;

// Tell AddressSanitizer which stack is current.
using StartSwitch = void (*)(void** fake, const void* bottom, size_t bytes);
using FinishSwitch = void (*)(void* fake, const void** bottom, size_t* bytes);
const auto kStartSwitch = reinterpret_cast<StartSwitch>(
    dlsym(RTLD_DEFAULT, "__sanitizer_start_switch_fiber"));
const auto kFinishSwitch = reinterpret_cast<FinishSwitch>(
    dlsym(RTLD_DEFAULT, "__sanitizer_finish_switch_fiber"));

void start_switch(void** fake, const void* bottom, size_t bytes) {
  if (kStartSwitch != nullptr) kStartSwitch(fake, bottom, bytes);
}
void finish_switch(void* fake, const void** bottom, size_t* bytes) {
  if (kFinishSwitch != nullptr) kFinishSwitch(fake, bottom, bytes);
}

}  // namespace

struct ItemRunner::Fiber {
  ItemRunner* runner = nullptr;
  std::byte* memory = nullptr;  // a guard page, then the stack
  void* stack = nullptr;        // saved registers
  void* fake_stack = nullptr;   // AddressSanitizer's
  int item = 0;
  int place = 0;  // number of its barrier
  bool waits = false;

  std::byte* bottom() const { return memory + kGuardBytes; }
};

namespace {
void* g_fiber = nullptr;  // the running fiber
uint64_t g_serial = 0;    // number of the group's run
}  // namespace

ItemRunner::ItemRunner(uint64_t seed) : state_(seed), shuffles_(seed != 0) {}

ItemRunner::~ItemRunner() {
  for (const auto& f : fibers_) munmap(f->memory, kGuardBytes + kStackBytes);
}

uint64_t ItemRunner::draw(uint64_t below) {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return (state_ >> 33) % below;
}

void ItemRunner::shuffle(std::vector<Fiber*>& fibers) {
  if (!shuffles_) return;
  for (size_t i = fibers.size(); i > 1; --i) {
    std::swap(fibers[i - 1], fibers[draw(i)]);
  }
}

// A new stack starts here: the switch returns to this function.
void ItemRunner::enter() {
  auto& fiber = *static_cast<Fiber*>(g_fiber);
  fiber.runner->fiber_loop(fiber);
}

ItemRunner::Fiber& ItemRunner::spare() {
  if (!spare_.empty()) {
    Fiber* f = spare_.back();
    spare_.pop_back();
    return *f;
  }
  void* memory =
      mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw errors::ResourceExhausted("no memory for the stack of an item");
  }
  mprotect(memory, kGuardBytes, PROT_NONE);
  auto fiber = std::make_unique<Fiber>();
  fiber->runner = this;
  fiber->memory = static_cast<std::byte*>(memory);
  // Six registers, the return address of the switch, and one for enter(); the
  // stack is aligned as at a call.
  auto* top = reinterpret_cast<void**>(fiber->bottom() + kStackBytes);
  top -= 10;
  for (int i = 0; i < 10; ++i) top[i] = nullptr;
  top[6] = reinterpret_cast<void*>(&ItemRunner::enter);
  fiber->stack = top;
  fibers_.push_back(std::move(fiber));
  return *fibers_.back();
}

void ItemRunner::resume(Fiber& fiber) {
  void* fake = nullptr;
  fiber.waits = false;
  g_fiber = &fiber;
  code_->item->id = fiber.item;
  start_switch(&fake, fiber.bottom(), kStackBytes);
  berth_host_switch(&own_stack_, fiber.stack);
  finish_switch(fake, nullptr, nullptr);
  (fiber.waits ? waiting_ : spare_).push_back(&fiber);
}

void ItemRunner::leave(Fiber& fiber) {
  start_switch(&fiber.fake_stack, own_bottom_, own_bytes_);
  berth_host_switch(&fiber.stack, own_stack_);
  finish_switch(fiber.fake_stack, &own_bottom_, &own_bytes_);
}

void ItemRunner::fiber_loop(Fiber& fiber) {
  finish_switch(nullptr, &own_bottom_, &own_bytes_);
  for (;;) {
    while (next_ < order_.size()) {
      fiber.item = order_[next_++];
      code_->item->id = fiber.item;
      code_->entry->call(args_);
    }
    leave(fiber);
  }
}

void ItemRunner::wait(int place) {
  auto& fiber = *static_cast<Fiber*>(g_fiber);
  fiber.place = place;
  fiber.waits = true;
  fiber.runner->leave(fiber);
}

void ItemRunner::check_barrier(const HostCode& code, size_t items) {
  const size_t waiting = waiting_.size();
  bool same = waiting == items;
  for (const Fiber* f : waiting_) same &= f->place == waiting_[0]->place;
  if (same) return;
  const std::string what =
      waiting < items ? fmt::format(
                            "{} of {} items ended while the others wait at a "
                            "barrier",
                            items - waiting, items)
                      : "items of a group wait at different barriers";
  // Their stacks are abandoned and not used again.
  waiting_.clear();
  throw errors::Internal(fmt::format(
      "GPU kernel {}, group ({}, {}, {}): {}; expected barriers that every "
      "item of a group passes equally often",
      code.name, code.item->group[0], code.item->group[1], code.item->group[2],
      what));
}

void ItemRunner::run_group(const HostCode& code, void* const* args) {
  const auto items = static_cast<size_t>(code.item->items);
  code_ = &code;
  args_ = args;
  code.item->serial = ++g_serial;
  RaceWatch::new_section();
  if (order_.size() != items) {
    order_.resize(items);
    std::iota(order_.begin(), order_.end(), 0);
  }
  for (size_t i = items; shuffles_ && i > 1; --i) {
    std::swap(order_[i - 1], order_[draw(i)]);
  }
  next_ = 0;
  while (next_ < items) resume(spare());
  std::vector<Fiber*> turn;
  while (!waiting_.empty()) {
    check_barrier(code, items);
    RaceWatch::new_section();
    turn.swap(waiting_);
    shuffle(turn);
    for (Fiber* f : turn) resume(*f);
    turn.clear();
  }
}

void ItemRunner::run(const HostCode& code, const Grid& grid,
                     void* const* args) {
  HostItem& item = *code.item;
  item.items = static_cast<int>(grid.items);
  item.groups = grid.groups[0];
  item.groups_y = grid.groups[1];
  item.barrier = &ItemRunner::wait;
  item.touch = &RaceWatch::touch;
  item.see_local = &RaceWatch::see_local;
  const uint64_t x = grid.groups[0], y = grid.groups[1], z = grid.groups[2];
  const uint64_t all = x * y * z;
  // A step that is coprime to the number of groups visits each group.
  uint64_t step = 1, at = 0;
  if (shuffles_ && all > 1) {
    at = draw(all);
    do step = 1 + draw(all);
    while (std::gcd(step, all) != 1);
  }
  for (uint64_t i = 0; i < all; ++i, at = (at + step) % all) {
    item.group[0] = static_cast<long long>(at % x);
    item.group[1] = static_cast<long long>(at / x % y);
    item.group[2] = static_cast<long long>(at / x / y);
    run_group(code, args);
  }
}

}  // namespace berth::gpu
