#include "tensor/variable_state.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>

#include "base/recycled.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/holders.h"
#include "device/idle_memory.h"
#include "tensor/block_copy.h"
#include "tensor/shards.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"
#include "tensor/write_marks.h"

namespace berth {

namespace {

// A snapshot: its block shares the variable's storage until a writer moves the
// bytes out to `own`. Keeps the variable alive while it shares.
struct Snapshot {
  Block block;
  Tensor handle;
  BlockRef own;
};

// Gives up a reference whose holder has seen that it is the last. Between that
// and now a reader may have shared the snapshot again; false: it has.
bool is_last(Block* block) {
  return block->references.load(std::memory_order_acquire) == 0 ||
         block->references.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

void end_snapshot(Block* block) {
  auto* snapshot = static_cast<Snapshot*>(block->owner);
  if (block->borrowed.load(std::memory_order_acquire)) {
    VariableState& state = *snapshot->handle.impl()->variable;
    std::lock_guard lock(state.snapshot_mutex);
    if (!is_last(block)) return;
    if (state.snapshot == block) {
      // Streams that still read it read the storage.
      state.late_uses.insert(state.late_uses.end(), block->uses,
                             block->uses + block->num_uses);
      state.snapshot = nullptr;
    }
  } else if (!is_last(block)) {
    return;
  }
  // May end the variable as well.
  std::default_delete<Snapshot>()(snapshot);
}

// Takes a reference unless the last one has ended already.
bool try_share(Block* block) {
  int32_t n = block->references.load();
  while (n > 0) {
    if (block->references.compare_exchange_weak(n, n + 1)) return true;
  }
  return false;
}

// True when `event` has been reached by failing. Does not block.
bool has_failed(const Event& event) {
  if (event.stream == nullptr || !event.stream->done(event)) return false;
  try {
    event.stream->synchronize(event);
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

// Lets `stream` wait for the uses of `block`.
void wait_for_uses(Stream& stream, const Block& block) {
  for (int i = 0; i < block.num_uses; ++i) stream.wait_for_reuse(block.uses[i]);
}

}  // namespace

void name_variable(const VariableState& v) {
  name_holder(v.storage.get(),
              lasting_name("variable '" + v.name + "'", "variables"), v.site);
}

Tensor make_variable(Device& device, std::string name, DType dtype,
                     const Shape& shape, bool trainable, Site site) {
  if (size_of(dtype) == 0 && dtype != string_) {
    throw errors::InvalidArgument(fmt::format(
        "Variable '{}' of {}{}; expected a dtype of numbers, bool or text",
        name, name_of(dtype), where_text(nullptr, site)));
  }
  Tensor handle = make_unbacked_variable(device, std::move(name), dtype, shape);
  VariableState& state = variable_state(handle);
  state.trainable = trainable;
  state.site = site;
  if (dtype == string_) {
    const std::vector<std::string> none(
        static_cast<size_t>(shape.num_elements()));
    state.storage = BlockRef::share(make_strings(none, shape).impl()->block);
    return handle;
  }
  state.storage =
      BlockRef::adopt(allocate_lasting(device.allocator(), state.size_bytes()));
  name_variable(state);
  return handle;
}

Tensor make_unbacked_variable(Device& device, std::string name, DType dtype,
                              const Shape& shape) {
  static std::atomic<uint64_t> serial{0};
  auto state = std::make_unique<VariableState>();
  state->name = std::move(name);
  state->dtype = dtype;
  state->shape = shape;
  state->device = &device;
  state->serial = ++serial;
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

void check_not_torn(VariableState& state) {
  if (!state.torn) return;
  std::lock_guard lock(state.torn_mutex);
  throw errors::FailedPrecondition(
      fmt::format("variable '{}' holds a half-made update: {}; assign it, or "
                  "restore it before reading: train::Checkpoint::restore(), "
                  "or model.load_weights()",
                  state.name, state.torn_by));
}

Tensor read_variable(const Tensor& handle) {
  VariableState& state = variable_state(handle);
  catch_up(state);
  std::shared_lock lock(state.mutex);
  check_not_torn(state);
  const Event ready = ready_of(state);
  BlockRef block;
  if (state.dtype == string_) {
    block = BlockRef::share(state.storage.get());
  } else {
    std::lock_guard snapshot_lock(state.snapshot_mutex);
    if (state.snapshot == nullptr || !try_share(state.snapshot)) {
      auto s = std::make_unique<Snapshot>();
      s->handle = handle;
      s->block.references = 1;
      s->block.data = state.storage->data;
      s->block.bytes = state.size_bytes();
      s->block.device = state.device;
      s->block.ready = ready;
      s->block.borrowed = true;
      s->block.deleter = &end_snapshot;
      state.snapshot = &s->block;
      s->block.owner = s.get();
      s.release();
    }
    block = BlockRef::adopt(state.snapshot);
  }
  TensorImpl* impl = new_tensor_impl();
  impl->dtype = state.dtype;
  impl->kind = TensorKind::kConcrete;
  impl->shape = state.shape;
  impl->block = block.detach();
  impl->byte_offset = 0;
  impl->device = state.device;
  return Tensor::adopt(impl);
}

void prepare_write(VariableState& state) {
  ++state.version;
  Stream& stream = state.device->compute_stream();
  BlockRef keep;
  std::vector<Event> late;
  {
    std::lock_guard lock(state.snapshot_mutex);
    late.swap(state.late_uses);
    if (state.snapshot && try_share(state.snapshot)) {
      keep = BlockRef::adopt(state.snapshot);
    }
  }
  for (const Event& e : late) stream.wait_for_reuse(e);
  wait_for_uses(stream, *state.storage.get());
  state.storage->num_uses = 0;
  if (!keep) return;
  Block* block = keep.get();
  wait_for_uses(stream, *block);
  auto& s = *static_cast<Snapshot*>(block->owner);
  s.own = BlockRef::adopt(state.device->allocator().allocate(block->bytes));
  name_holder(s.own.get(), "former values of variables");
  // A value that failed stays failed.
  if (!has_failed(block->ready)) {
    launch_block_copy(stream, s.own, state.storage, state.size_bytes(),
                      "SnapshotVariable");
    block->ready = stream.record();
  }
  block->data = s.own->data;
  {
    std::lock_guard lock(state.snapshot_mutex);
    state.snapshot = nullptr;
  }
  block->borrowed.store(false, std::memory_order_release);
}

void mark_torn(VariableState& state, std::string why) {
  std::lock_guard lock(state.torn_mutex);
  state.torn_by = std::move(why);
  state.torn = true;
}

namespace {

// Behind work that writes variables.
struct Watch {
  WrittenVariables handles;
  const char* what = "";
  const Device* device = nullptr;
  Event before;  // the end of that work
  bool ran = false;

  // Why the work before failed. The stream has passed it: nobody waits.
  std::string why() const {
    try {
      synchronize(before);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "it was skipped";
  }

  // Kernels that hand their work on may fail after they ran.
  bool failed() const {
    return !ran || (before.stream->native() != nullptr && has_failed(before));
  }

  void end() const {
    if (!failed()) return;
    const std::string text =
        fmt::format("{} failed on {} ({})", what, device->short_name(), why());
    for (const Tensor& t : *handles) mark_torn(*t.impl()->variable, text);
  }
};

}  // namespace

void watch_writes(Stream& stream, WrittenVariables handles, const char* what) {
  Work work;
  work.what = "WatchWrites";
  work.run = [](void* c, Stream&) { static_cast<Watch*>(c)->ran = true; };
  work.drop = [](void* c) {
    auto* watch = static_cast<Watch*>(c);
    watch->end();
    Recycled<Watch>::give_back(watch);
  };
  work.context = Recycled<Watch>::take(
      {std::move(handles), what, &stream.device(), stream.record()});
  stream.launch(work);
}

void watch_writes(Stream& stream, std::vector<Tensor> handles,
                  const char* what) {
  watch_writes(stream,
               std::make_shared<const std::vector<Tensor>>(std::move(handles)),
               what);
}

VariableState* borrowed_from(Block* block) {
  if (!block->borrowed.load(std::memory_order_acquire)) return nullptr;
  return static_cast<Snapshot*>(block->owner)->handle.impl()->variable;
}

Tensor borrowed_handle(Block* block) {
  return static_cast<Snapshot*>(block->owner)->handle;
}

void ReadGuard::hold(Block* block) {
  VariableState* state = borrowed_from(block);
  if (state == nullptr) return;
  state->mutex.lock_shared();
  state_ = state;
}

}  // namespace berth
