// Instances: what one run of a plan owns.

#include <algorithm>
#include <utility>

#include "base/poison.h"
#include "device/exact_memory.h"
#include "device/idle_memory.h"
#include "exec/arena_pool.h"
#include "exec/deadline.h"
#include "exec/plan_impl.h"

namespace berth {

void Instance::count_exact(bool is_idle) {
  if (std::exchange(exact_is_idle, is_idle) == is_idle) return;
  for (const BlockRef& block : exact) {
    if (block) count_idle(*block->allocator, *block.get(), is_idle);
  }
}

void Plan::Impl::resolve(Instance& instance) const {
  for (size_t b = 0; b < program->buffers.size(); ++b) {
    const PlanBuffer& buffer = program->buffers[b];
    std::byte*& base = instance.bases[b];
    switch (buffer.where) {
      case Where::kArena:
        base = !instance.exact.empty() && instance.exact[b]
                   ? instance.exact[b]->data
                   : instance.arena_base[buffer.device] + buffer.offset;
        break;
      case Where::kConst:
        base = program->constants[buffer.index].impl()->data();
        break;
      case Where::kVariable: {
        const BlockRef& storage =
            variable_state(variables.uses[buffer.index].handle).storage;
        base = storage ? storage->data : nullptr;
        break;
      }
      case Where::kArg:
      case Where::kOutput:
        break;
    }
  }
  instance.resolve();
}

// Gives each buffer in the arena of a device with exact memory its own block.
void Plan::Impl::take_exact(Instance& instance) const {
  const Program& p = *program;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const PlanBuffer& buffer = p.buffers[b];
    if (buffer.where != Where::kArena) continue;
    Device& device = *p.devices[buffer.device];
    if (!has_exact_memory(device)) continue;
    instance.exact.resize(p.buffers.size());
    instance.exact[b] =
        BlockRef::adopt(device.allocator().allocate(buffer.bytes));
  }
}

std::unique_ptr<Instance> Plan::Impl::checkout() {
  std::unique_ptr<Instance> i;
  std::vector<std::unique_ptr<Instance>> ended;  // destroyed without the lock
  int64_t runs_before;
  {
    std::lock_guard lock(mutex);
    runs_before = record.runs;
    for (auto& left : left_behind) {
      if (has_ended(*left)) ended.push_back(std::move(left));
    }
    std::erase(left_behind, nullptr);
    // The oldest one whose run has ended; when a few are still on their way,
    // the oldest of them.
    constexpr size_t kInFlight = 3;
    auto it = std::find_if(idle.begin(), idle.end(),
                           [](const auto& x) { return has_ended(*x); });
    if (it == idle.end() && idle.size() >= kInFlight) it = idle.begin();
    if (it != idle.end()) {
      i = std::move(*it);
      idle.erase(it);
    }
  }
  if (!i) {
    i = std::make_unique<Instance>(*program, writes);
    if (exact_memory_asked()) take_exact(*i);
    i->prepared = runner->prepare(*i);
  }
  i->count_exact(false);
  i->runs_before = runs_before;
  // The last run of this instance may still be on its way.
  for (Event& e : i->done) {
    // Whether it failed does not concern this one.
    berth::finish(e);
    e = {};
  }
  i->prepared->finish();
  bool moved = false;
  const auto& devices = program->devices;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (program->arena_bytes[d] == 0) continue;
    if (exact_memory_asked() && has_exact_memory(*devices[d])) continue;
    i->arenas[d] =
        ArenaPool::get().take(*program, static_cast<int>(d), i->arena_base[d]);
    // The guard follows steps that run here; no others.
    const BlockRef& arena = i->arenas[d];
    if (program->runs_here(*devices[d])) {
      poison(arena->data, arena->bytes);
    } else if (devices[d]->memory().host_addressable) {
      unpoison(arena->data, arena->bytes);
    }
    moved |= i->arena_base[d] != i->arenas[d]->data;
    i->arena_base[d] = i->arenas[d]->data;
  }
  i->guarded = 0;
  const double scope = DeadlineScope::current();
  i->deadline = Deadline(scope > 0 ? scope : options.timeout_seconds);
  i->launched = 0;
  if (moved || !i->bases_resolved) {
    resolve(*i);
    i->bases_resolved = true;
  }
  return i;
}

void Plan::Impl::give_back(std::unique_ptr<Instance> instance) {
  const auto& devices = program->devices;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (instance->arenas[d]) {
      // Other steps, of a body, may be on their way still.
      const BlockRef& arena = instance->arenas[d];
      if (program->runs_here(*devices[d])) poison(arena->data, arena->bytes);
      ArenaPool::get().give_back(*devices[d], std::move(instance->arenas[d]));
    }
  }
  instance->count_exact(true);
  std::lock_guard lock(mutex);
  record.runs += std::exchange(instance->runs, 0);
  if (idle.capacity() == idle.size()) idle.reserve(idle.size() + 4);
  idle.push_back(std::move(instance));
}

}  // namespace berth
