#include "tensor/variable_state.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <mutex>

#include "berth/errors.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

// A snapshot: its block shares the variable's storage until a writer moves the
// bytes out to `own`. Keeps the variable alive while it shares.
struct Snapshot {
  Block block;
  Tensor handle;
  BlockRef own;
};

void end_snapshot(Block* block) {
  std::unique_ptr<Snapshot> s(static_cast<Snapshot*>(block->owner));
  // Moved out: no longer the variable's business, and its writer may hold the
  // lock right now.
  if (!block->borrowed.load(std::memory_order_acquire)) return;
  VariableState& state = *s->handle.impl()->variable;
  {
    std::unique_lock lock(state.mutex);
    if (state.snapshot == block) {
      // Foreign streams that still read it read the storage.
      for (int i = 0; i < block->num_uses; ++i) {
        add_use(state.storage.get(), block->uses[i]);
      }
      state.snapshot = nullptr;
    }
  }
}

// Takes a reference unless the last one has ended already.
bool try_share(Block* block) {
  int32_t n = block->references.load();
  while (n > 0) {
    if (block->references.compare_exchange_weak(n, n + 1)) return true;
  }
  return false;
}

void copy_bytes(void* context, const AddressMap& map) {
  struct Args {
    void* target;
    const void* source;
    size_t bytes;
  };
  const auto& a = *static_cast<Args*>(context);
  std::memcpy(map.translate(a.target), map.translate(a.source), a.bytes);
}

}  // namespace

Tensor make_variable(Device& device, std::string name, DType dtype,
                     const Shape& shape, bool trainable, Site site) {
  static std::atomic<uint64_t> serial{0};
  auto state = std::make_unique<VariableState>();
  state->name = std::move(name);
  state->dtype = dtype;
  state->shape = shape;
  state->trainable = trainable;
  state->device = &device;
  state->site = site;
  state->serial = ++serial;
  state->storage =
      BlockRef::adopt(device.allocator().allocate(state->size_bytes()));
  TensorImpl* impl = new_tensor_impl();
  impl->dtype = resource;
  impl->kind = TensorKind::kVariable;
  impl->shape = Shape{};
  impl->block = nullptr;
  impl->byte_offset = 0;
  impl->device = &device;
  impl->variable = state.release();
  return Tensor::adopt(impl);
}

VariableState& variable_state(const Tensor& handle) {
  if (!handle.defined() || handle.impl()->kind != TensorKind::kVariable) {
    throw errors::InvalidArgument(
        "expected the handle of a Variable, got another tensor");
  }
  return *handle.impl()->variable;
}

void check_not_torn(const VariableState& state) {
  if (!state.torn) return;
  throw errors::FailedPrecondition(fmt::format(
      "variable '{}' holds a half-made update: {}; assign or restore it before "
      "reading",
      state.name, state.torn_by));
}

Tensor read_variable(const Tensor& handle) {
  VariableState& state = variable_state(handle);
  std::unique_lock lock(state.mutex);
  check_not_torn(state);
  if (state.snapshot == nullptr || !try_share(state.snapshot)) {
    auto s = std::make_unique<Snapshot>();
    s->handle = handle;
    s->block.references = 1;
    s->block.data = state.storage->data;
    s->block.bytes = state.size_bytes();
    s->block.device = state.device;
    s->block.borrowed = true;
    s->block.deleter = &end_snapshot;
    state.snapshot = &s->block;
    s->block.owner = s.get();
    s.release();
  }
  state.snapshot->ready = state.storage->ready;
  TensorImpl* impl = new_tensor_impl();
  impl->dtype = state.dtype;
  impl->kind = TensorKind::kConcrete;
  impl->shape = state.shape;
  impl->block = state.snapshot;
  impl->byte_offset = 0;
  impl->device = state.device;
  return Tensor::adopt(impl);
}

void prepare_write(VariableState& state) {
  Block* block = state.snapshot;
  if (block == nullptr) return;
  state.snapshot = nullptr;
  if (!try_share(block)) return;  // dying: nobody reads it any more
  const BlockRef keep = BlockRef::adopt(block);
  auto& s = *static_cast<Snapshot*>(block->owner);
  const size_t bytes = state.size_bytes();
  s.own = BlockRef::adopt(state.device->allocator().allocate(bytes));
  struct {
    void* target;
    const void* source;
    size_t bytes;
  } args{s.own->data, state.storage->data, bytes};
  Stream& stream = state.device->compute_stream();
  for (int i = 0; i < block->num_uses; ++i) stream.wait(block->uses[i]);
  Work work;
  work.run = &copy_bytes;
  work.context = &args;
  work.what = "SnapshotVariable";
  work.moved_bytes = 2.0 * static_cast<double>(bytes);
  stream.launch(work);
  block->ready = stream.record();
  synchronize(block->ready);  // `args` is on this frame
  block->data = s.own->data;
  block->borrowed.store(false, std::memory_order_release);
}

void mark_torn(VariableState& state, std::string why) {
  state.torn = true;
  state.torn_by = std::move(why);
}

VariableState* borrowed_from(Block* block) {
  if (!block->borrowed.load(std::memory_order_acquire)) return nullptr;
  return static_cast<Snapshot*>(block->owner)->handle.impl()->variable;
}

void ReadGuard::hold(Block* block) {
  VariableState* state = borrowed_from(block);
  if (state == nullptr) return;
  state->mutex.lock_shared();
  state_ = state;
}

}  // namespace berth
