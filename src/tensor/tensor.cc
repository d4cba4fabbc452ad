// Tensor, and the pool of its impls.

#include "berth/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/immortal.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

constexpr size_t kPoolLimit = 512;
// Threads pass what they have too much of to those that make more than they
// destroy (a pipeline's), so that a warm hand-over allocates nothing.
constexpr size_t kExchange = 64;
constexpr size_t kSharedLimit = 8192;

struct ImplPool {
  ~ImplPool();
  std::vector<TensorImpl*> free;
};

struct SharedImpls {
  std::mutex mutex;
  std::vector<TensorImpl*> free;
  std::atomic<size_t> count{0};  // of free, for a look without the lock
};

SharedImpls& shared_impls() {
  static auto& shared = []() -> SharedImpls& {
    auto& made = immortal<SharedImpls>();
    made.free.reserve(kSharedLimit);
    return made;
  }();
  return shared;
}

// Moves up to `n` from the end of one list to the other.
void move_impls(std::vector<TensorImpl*>* from, std::vector<TensorImpl*>* to,
                size_t n) {
  n = std::min(n, from->size());
  to->insert(to->end(), from->end() - static_cast<ptrdiff_t>(n), from->end());
  from->resize(from->size() - n);
}

// Fills an empty pool from the shared list, if that has any.
void refill(ImplPool* pool) {
  SharedImpls& shared = shared_impls();
  if (shared.count.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(shared.mutex);
  move_impls(&shared.free, &pool->free, kExchange);
  shared.count.store(shared.free.size(), std::memory_order_relaxed);
}

// Makes room in a full pool, if the shared list has any.
void drain(ImplPool* pool) noexcept {
  SharedImpls& shared = shared_impls();
  std::lock_guard lock(shared.mutex);
  if (shared.free.size() + kExchange > kSharedLimit) return;
  move_impls(&pool->free, &shared.free, kExchange);
  shared.count.store(shared.free.size(), std::memory_order_relaxed);
}

constinit thread_local ImplPool* t_pool
    __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local bool t_pool_ended = false;

ImplPool::~ImplPool() {
  t_pool = nullptr;
  t_pool_ended = true;
  for (TensorImpl* impl : free) std::default_delete<TensorImpl>()(impl);
}

ImplPool* make_pool() {
  if (t_pool_ended) return nullptr;
  static thread_local ImplPool pool;
  pool.free.reserve(kPoolLimit);
  return t_pool = &pool;
}

const TensorImpl& checked(const TensorImpl* impl) {
  if (impl == nullptr) {
    throw errors::FailedPrecondition(
        "an empty Tensor was used; expected one that an op returned");
  }
  return *impl;
}

}  // namespace

TensorImpl* new_tensor_impl() {
  ImplPool* pool = t_pool ? t_pool : make_pool();
  if (pool && pool->free.empty()) [[unlikely]]
    refill(pool);
  if (pool && !pool->free.empty()) {
    TensorImpl* impl = pool->free.back();
    pool->free.pop_back();
    impl->references.store(1, std::memory_order_relaxed);
    impl->tape_slot.store(0, std::memory_order_relaxed);
    return impl;
  }
  return std::make_unique<TensorImpl>().release();
}

void Tensor::destroy(TensorImpl* impl) noexcept {
  switch (impl->kind) {
    case TensorKind::kConcrete:
      BlockRef::drop(impl->block);
      impl->block = nullptr;
      break;
    case TensorKind::kVariable:
      std::default_delete<VariableState>()(impl->variable);
      impl->variable = nullptr;
      break;
    case TensorKind::kSymbolic:
      break;
  }
  ImplPool* pool = t_pool ? t_pool : make_pool();
  if (pool && pool->free.size() >= kPoolLimit) [[unlikely]]
    drain(pool);
  if (pool && pool->free.size() < kPoolLimit) {
    pool->free.push_back(impl);
  } else {
    std::default_delete<TensorImpl>()(impl);
  }
}

bool Tensor::is_symbolic() const {
  return impl_ && impl_->kind == TensorKind::kSymbolic;
}
const Shape& Tensor::shape() const { return checked(impl_).shape; }
DType Tensor::dtype() const { return checked(impl_).dtype; }
TensorSpec Tensor::spec() const { return {shape(), dtype(), {}}; }

std::string Tensor::device() const {
  const Device* d = checked(impl_).device;
  return d ? d->str() : "";
}

std::string Tensor::backing_device() const {
  const TensorImpl& i = checked(impl_);
  return i.block && i.block->device ? i.block->device->str() : device();
}

namespace {

// The bytes of an uninitialised tensor, which make_tensor() may refuse.
size_t bytes_to_allocate(DType dtype, const Shape& shape) {
  const int64_t n = shape.num_elements();
  if (n < 0 || n > kMostElements) [[unlikely]] {
    throw errors::InvalidArgument(
        fmt::format("cannot allocate a tensor of shape {}", shape.str()));
  }
  if (dtype == string_) [[unlikely]] {
    throw errors::InvalidArgument(
        "cannot allocate a tensor of strings: nothing computes strings, and "
        "they are not copied");
  }
  return static_cast<size_t>(n) * size_of(dtype);
}

// Takes over `block`.
Tensor tensor_in(Block* block, Device& device, DType dtype,
                 const Shape& shape) {
  TensorImpl* impl = new_tensor_impl();
  impl->dtype = dtype;
  impl->kind = TensorKind::kConcrete;
  impl->shape = shape;
  impl->block = block;
  impl->byte_offset = 0;
  impl->device = &device;
  return Tensor::adopt(impl);
}

}  // namespace

Tensor make_tensor(Device& device, DType dtype, const Shape& shape) {
  Block* block = device.allocator().allocate(bytes_to_allocate(dtype, shape));
  return tensor_in(block, device, dtype, shape);
}

Tensor make_pinned_tensor(DType dtype, const Shape& shape) {
  const DeviceManager& devices = DeviceManager::get();
  Allocator* pool = devices.pinned_pool();
  if (pool == nullptr) return {};
  Block* block = pool->try_allocate(bytes_to_allocate(dtype, shape));
  if (block == nullptr) return {};
  return tensor_in(block, devices.host(), dtype, shape);
}

Tensor make_alias(const Tensor& base, const Shape& shape, size_t byte_offset) {
  const TensorImpl& b = *base.impl();
  TensorImpl* impl = new_tensor_impl();
  impl->dtype = b.dtype;
  impl->kind = TensorKind::kConcrete;
  impl->shape = shape;
  impl->block = BlockRef::share(b.block).detach();
  impl->byte_offset = b.byte_offset + byte_offset;
  impl->device = b.device;
  return Tensor::adopt(impl);
}

Tensor make_symbolic(uint64_t trace, int32_t node, int32_t output, DType dtype,
                     const Shape& shape) {
  TensorImpl* impl = new_tensor_impl();
  impl->dtype = dtype;
  impl->kind = TensorKind::kSymbolic;
  impl->shape = shape;
  impl->block = nullptr;
  impl->byte_offset = 0;
  impl->device = nullptr;
  impl->trace = trace;
  impl->node = node;
  impl->output = output;
  return Tensor::adopt(impl);
}

Tensor wrap_memory(void* data, Shape shape, DType dtype,
                   std::function<void()> deleter) {
  const size_t size = size_of(dtype);
  const int64_t n = shape.num_elements();
  if (n < 0 || size == 0) {
    throw errors::InvalidArgument(
        fmt::format("wrap_memory: {}{} is no tensor of numbers; expected known "
                    "dimensions and a dtype that holds numbers",
                    name_of(dtype), shape.str()));
  }
  if (n > 0 && (data == nullptr || reinterpret_cast<size_t>(data) % size)) {
    throw errors::InvalidArgument(fmt::format(
        "wrap_memory: the address {} of {}{}; expected one that is a multiple "
        "of {} and not null",
        data, name_of(dtype), shape.str(), size));
  }
  struct Owner {
    Block block;
    std::function<void()> deleter;
  };
  auto owner = std::make_unique<Owner>();
  owner->deleter = std::move(deleter);
  Block& b = owner->block;
  b.references = 1;
  b.data = static_cast<std::byte*>(data);
  Device& host = DeviceManager::get().host();
  b.device = &host;
  b.deleter = [](Block* block) {
    std::unique_ptr<Owner> o(static_cast<Owner*>(block->owner));
    if (o->deleter) o->deleter();
  };
  TensorImpl* impl = new_tensor_impl();
  impl->dtype = dtype;
  impl->kind = TensorKind::kConcrete;
  impl->shape = shape;
  b.bytes = impl->size_bytes();
  b.owner = owner.release();
  impl->block = &b;
  impl->byte_offset = 0;
  impl->device = &host;
  return Tensor::adopt(impl);
}

}  // namespace berth
