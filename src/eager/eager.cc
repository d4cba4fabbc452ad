// Immediate execution: pick the device, find the kernel, allocate, run.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "base/checksum.h"
#include "base/diagnostics.h"
#include "base/timeline.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/holders.h"
#include "eager/check_numerics.h"
#include "eager/kernel_cache.h"
#include "eager/lint_moves.h"
#include "eager/parts.h"
#include "eager/pick_device.h"
#include "eager/variable_locks.h"
#include "op/callable.h"
#include "op/contract_scope.h"
#include "op/control_flow.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/kernel.h"
#include "op/watched_ops.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"
#include "tensor/write_marks.h"

namespace berth {

namespace {

constexpr int kMaxDepth = 64;            // of decompositions
constexpr int64_t kWorthCutting = 4096;  // elements

// Inputs and outputs of one call, on the stack for the usual sizes.
template <class T, size_t kInline>
class Buffer {
 public:
  explicit Buffer(size_t n) : size_(n) {
    if (n > kInline) heap_.resize(n);
  }
  T* data() { return size_ > kInline ? heap_.data() : inline_.data(); }
  T& operator[](size_t i) { return data()[i]; }
  std::span<T> span() { return {data(), size_}; }

 private:
  size_t size_;
  std::array<T, kInline> inline_{};
  std::vector<T> heap_;
};

[[noreturn]] void empty_input(const OpDef& op, int i) {
  throw errors::FailedPrecondition(fmt::format(
      "{}: {} is an empty Tensor{}; expected one that an op returned",
      op.name(), op.input(i).name, where_text()));
}

[[noreturn]] void foreign_symbol(const OpDef& op) {
  throw errors::FailedPrecondition(fmt::format(
      "{}: an input belongs to a traced function that has ended{}; return it "
      "from the function instead of keeping it",
      op.name(), where_text()));
}

[[noreturn]] void unknown_result(const OpDef& op, const Shape& shape) {
  throw errors::InvalidArgument(fmt::format(
      "{}: the result would have shape {}{}; expected dimensions of at least "
      "0 (only reshape takes a -1, for what is left)",
      op.name(), shape.str(), where_text()));
}

void run_inline(Device& device, const OpDef& op,
                std::span<const Tensor* const> in, const Attrs* attrs,
                std::span<Tensor> out, const BoundKernel& kernel,
                const InferContext& c) {
  Buffer<View, 8> views(in.size() + out.size());
  VariableLocks locks(op, in);
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorImpl& t = *in[i]->impl();
    if (t.kind == TensorKind::kVariable) {
      const VariableState& v = *t.variable;
      views[i] = {v.storage->data, &v.shape, v.dtype};
    } else {
      views[i] = {t.data(), &t.shape, t.dtype};
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const TensorImpl& t = *out[i].impl();
    views[in.size() + i] = {t.data(), &t.shape, t.dtype};
  }
  KernelContext context;
  context.stream = &device.compute_stream();
  context.pool = device.pool();
  context.slices = default_slices(device);
  BlockRef scratch;
  if (kernel.state && kernel.state->scratch_bytes() > 0) {
    scratch = BlockRef::adopt(
        device.allocator().allocate(kernel.state->scratch_bytes()));
    context.scratch = scratch->data;
  }
  KernelCall call{&op,
                  attrs,
                  views.data(),
                  views.data() + in.size(),
                  static_cast<int>(in.size()),
                  static_cast<int>(out.size()),
                  &context};
  locks.run([&] {
    try {
      if (kernel.def->parallel || !kernel.direct ||
          !run_in_parts(device, kernel.direct, call, c)) {
        kernel.run(call);
      }
    } catch (const errors::Error& e) {
      raise_with_place(e, t_state.layer, t_state.site);
    }
  });
}

// One call on its way through a stream; holds what it uses. Addresses are those
// of the launch: a snapshot that shares a variable's storage then reads the
// storage before any later write of the same stream.
struct AsyncCall {
  const OpDef* op;
  AttrsRef attrs;
  std::shared_ptr<const BoundKernel> kernel;
  std::vector<View> views;
  std::vector<Shape> shapes;
  std::vector<BlockRef> blocks;
  std::vector<Tensor> handles;  // of variables
  int num_in = 0;
  KernelContext context;
  std::shared_ptr<const WriteMarks> written;  // null: nothing
  uint64_t writer = 0;

  AsyncCall(size_t in, size_t out) : num_in(static_cast<int>(in)) {
    views.reserve(in + out);
    shapes.reserve(in + out);  // views point into it
    blocks.reserve(in + out + 1);
  }

  void add(void* data, const Shape& shape, DType dtype) {
    shapes.push_back(shape);
    views.push_back({data, &shapes.back(), dtype});
  }

  void run() {
    if (written) {
      for (const auto& mark : *written) begin_write(*mark, writer);
    }
    kernel->run({op, attrs.get(), views.data(), views.data() + num_in, num_in,
                 static_cast<int>(views.size()) - num_in, &context});
  }
};

// Adds the inputs of a call to `call` and lets `stream` wait for them. The
// locks of the variables among them are held.
void add_inputs(const OpDef& op, std::span<const Tensor* const> in,
                Stream& stream, AsyncCall* call) {
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorImpl& t = *in[i]->impl();
    if (t.kind == TensorKind::kVariable) {
      const VariableState& v = *t.variable;
      // Overwriting needs no old value, so a failed one does no harm.
      const Access access = op.input(static_cast<int>(i)).access;
      if (access == Access::kOverwritesVariable) {
        stream.wait_for_reuse(v.storage->ready);
      } else {
        stream.wait(ready_of(v));
      }
      call->add(v.storage->data, v.shape, v.dtype);
      call->handles.push_back(*in[i]);
      continue;
    }
    stream.wait(t.block->ready);
    call->add(t.data(), t.shape, t.dtype);
    // Holding a snapshot would make the next writer copy it.
    if (borrowed_from(t.block)) {
      call->handles.push_back(borrowed_handle(t.block));
    } else {
      call->blocks.push_back(BlockRef::share(t.block));
    }
  }
}

// What a call writes, which is locked; null: nothing.
std::shared_ptr<const WriteMarks> written_by(
    const OpDef& op, std::span<const Tensor* const> in) {
  if (!op.has_variables() || !op.stateful()) return nullptr;
  WriteMarks all;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!writes(op.input(static_cast<int>(i)).access)) continue;
    all.push_back(std::make_shared<WriteMark>(std::vector<Tensor>{*in[i]}));
  }
  return std::make_shared<const WriteMarks>(std::move(all));
}

void run_async(Device& device, const OpDef& op,
               std::span<const Tensor* const> in, const Attrs* attrs,
               std::span<Tensor> out, std::shared_ptr<const BoundKernel> kernel,
               const InferContext& cost_context) {
  Stream& stream = device.compute_stream();
  VariableLocks locks(op, in);
  auto call = std::make_unique<AsyncCall>(in.size(), out.size());
  call->op = &op;
  call->attrs = AttrsRef::share(attrs);
  add_inputs(op, in, stream, call.get());
  for (const Tensor& t : out) {
    const TensorImpl& i = *t.impl();
    call->add(i.data(), i.shape, i.dtype);
    call->blocks.push_back(BlockRef::share(i.block));
  }
  if (kernel->state && kernel->state->scratch_bytes() > 0) {
    call->blocks.push_back(BlockRef::adopt(
        device.allocator().allocate(kernel->state->scratch_bytes())));
    name_holder(call->blocks.back().get(), op.name().c_str(), t_state.site);
    call->context.scratch = call->blocks.back()->data;
  }
  call->kernel = std::move(kernel);
  call->context.stream = &stream;
  const auto written = call->written = written_by(op, in);
  const uint64_t writer = written ? lock_marks(*written) : 0;
  call->writer = writer;
  Work work;
  work.what = op.name().c_str();
  work.site = t_state.site;
  const Cost cost = op.cost(cost_context);
  work.flops = cost.flops;
  work.moved_bytes = cost.bytes;
  work.run = [](void* c, Stream&) { static_cast<AsyncCall*>(c)->run(); };
  work.drop = [](void* c) {
    std::unique_ptr<AsyncCall>(static_cast<AsyncCall*>(c));
  };
  work.context = call.release();
  stream.launch(work);
  const Event done = stream.record();
  for (const Tensor& t : out) t.impl()->block->ready = done;
  locks.written([&](VariableState& v) {
    v.storage->ready = done;
    v.torn = false;
  });
  if (written) watch_marks(stream, written, writer, op.name().c_str());
}

void decompose(const OpDef& op, std::span<const Tensor* const> in,
               const Attrs* attrs, std::span<Tensor> out,
               const PickedDevice& picked) {
  if (++t_state.depth > kMaxDepth) {
    t_state.depth = 0;
    throw errors::Internal(
        fmt::format("{}: its decomposition does not end", op.name()));
  }
  struct Leave {
    ~Leave() { t_state.depth = t_state.depth > 0 ? t_state.depth - 1 : 0; }
  } leave;
  // Parts of what was asked for are asked for.
  const bool asked = picked.rule == ChoiceRule::kRequest && t_state.scope;
  const OnDevice on(picked.device,
                    asked ? t_state.scope->kind : ScopeKind::kEngine);
  std::vector<Tensor> args;
  for (const Tensor* t : in) args.push_back(*t);
  Tensors results = op.decompose()(args, op, attrs);
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::move(results.at(i));
}

// Where a call runs, and by what.
struct BoundCall {
  PickedDevice picked;
  Device* device = nullptr;  // whose kernel it is: picked, or the host
  bool on_host = false;      // for ops that only read shapes
  std::shared_ptr<const BoundKernel> kernel;  // null: an alias
};

// Picks the device; one whose kernels refuse these shapes is not asked again.
BoundCall bind_call(const OpDef& op, std::span<const Tensor* const> in,
                    const Attrs* attrs, std::span<const SpecView> specs,
                    std::span<const OutSpec> outs, DType dtype) {
  DeviceManager& devices = DeviceManager::get(op.name(), t_state.site);
  BoundCall call;
  call.on_host = runs_on_host(op, outs);
  DeviceBits refused = 0;
  for (;;) {
    call.picked = pick_device(op, in, dtype, refused);
    call.device = call.on_host ? &devices.host() : call.picked.device;
    if (op.kind() == OpKind::kAlias) break;
    call.kernel = cached_kernel(
        *call.device, {&op, attrs, specs, outs, default_slices(*call.device)});
    if (call.kernel->def || op.decompose()) break;
    refused |= DeviceBits{1} << devices.position_of(*call.picked.device);
  }
  if (call.picked.rule == ChoiceRule::kFallback) [[unlikely]] {
    report_pick(op, in, outs, call.picked);
  }
  if (g_log_device_placement.load(std::memory_order_relaxed)) [[unlikely]] {
    log_placement(op, *call.picked.device);
  }
  if (contracts_open()) [[unlikely]] {
    check_eager_call(op, {*call.picked.device, *call.device}, in, outs);
  }
  return call;
}

// Devices of one memory: an op on one reads what another has, once it is
// there. A snapshot that shares a variable's storage is copied: its reads are
// ordered against writes by the streams of the variable's device alone.
bool can_hand_over(const TensorImpl& t, const Device& device) {
  return same_memory(*t.block->device, device) && t.dtype != string_ &&
         !t.block->borrowed.load();
}

// Copies inputs that live elsewhere to `moved` and points `args` there.
// Returns the bytes that travel.
size_t bring_over(const OpDef& op, const BoundCall& call,
                  std::span<const Tensor* const> in, std::span<Tensor> moved,
                  std::span<const Tensor*> args) {
  size_t bytes = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorImpl& t = *in[i]->impl();
    args[i] = in[i];
    if (t.kind == TensorKind::kVariable) {
      if (t.device == call.device) continue;
      throw errors::InvalidArgument(fmt::format(
          "{}: variable '{}' lives on {} but another one is on {}{}; expected "
          "all variables of an update on one device",
          op.name(), t.variable->name, t.device->short_name(),
          call.device->short_name(), where_text()));
    }
    if (t.block->device == call.device || call.on_host) continue;
    check_policy(op, static_cast<int>(i), *in[i], *call.device);
    if (call.kernel != nullptr && can_hand_over(t, *call.device)) {
      if (call.device->runs_inline()) synchronize(t.block->ready);
      continue;
    }
    moved[i] = copy_to_device(*in[i], *call.device);
    args[i] = &moved[i];
    bytes += t.size_bytes();
  }
  return bytes;
}

// While an op uses variables that rebind, none gets other storage.
std::unique_lock<std::recursive_mutex> hold_rebinding() {
  static std::recursive_mutex mutex;
  return std::unique_lock(mutex);
}

bool rebound(const Tensor& handle, const Tensor& value) {
  try {
    return rebind_variable(handle, value);
  } catch (const errors::Error& e) {
    raise_with_place(e, t_state.layer, t_state.site);
  }
}

void compute(const OpDef& op, std::span<const Tensor* const> in,
             const Attrs* attrs, std::span<Tensor> out) {
  Buffer<SpecView, 6> specs(in.size());
  Buffer<OutSpec, 3> outs(out.size());
  std::unique_lock<std::recursive_mutex> rebinding;
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorImpl& t = *in[i]->impl();
    if (t.kind == TensorKind::kSymbolic) foreign_symbol(op);
    if (t.kind == TensorKind::kVariable && t.variable->rebinds()) [[unlikely]] {
      if (!rebinding) rebinding = hold_rebinding();
      if (op.name() == "AssignVariableOp" && rebound(*in[0], *in[1])) return;
    }
    specs[i] = t.kind == TensorKind::kVariable
                   ? SpecView{resource, &t.variable->shape, t.variable->dtype}
                   : SpecView{t.dtype, &t.shape, DType::kInvalid};
  }
  infer_outputs(op, attrs, specs.span(), outs.span());
  for (const OutSpec& s : outs.span()) {
    if (s.shape.num_elements() < 0) unknown_result(op, s.shape);
  }
  const DType dtype = kernel_dtype(specs.span(), outs.span());
  BoundCall call = bind_call(op, in, attrs, specs.span(), outs.span(), dtype);
  Device& device = *call.device;
  const InferContext c(op, attrs, specs.span(), outs.span());
  Buffer<Tensor, 4> moved(in.size());
  Buffer<const Tensor*, 6> args(in.size());
  if (bring_over(op, call, in, moved.span(), args.span()) >= kLintMovedBytes)
      [[unlikely]] {
    lint_moves(op, in, c, dtype, device);
  }
  if (!call.kernel) {
    out[0] = make_alias(*args[0], outs[0].shape);
    return;
  }
  if (!call.kernel->def) {
    return decompose(op, args.span(), attrs, out, call.picked);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = make_tensor(device, outs[i].dtype, outs[i].shape);
    name_holder(out[i].impl()->block, op.name().c_str(), t_state.site);
  }
  if (device.runs_inline()) {
    run_inline(device, op, args.span(), attrs, out, *call.kernel, c);
  } else {
    run_async(device, op, args.span(), attrs, out, std::move(call.kernel), c);
  }
  if (call.on_host) {
    for (Tensor& t : out) t.impl()->device = call.picked.device;
  }
}

// The common case: a direct elementwise kernel, everything on one inline
// device, no variables. False: not that case, nothing done.
bool try_fast(const OpDef& op, std::span<const Tensor* const> in,
              const Attrs* attrs, std::span<Tensor> out) {
  if (!op.elementwise() || in.size() > 2 || in.size() != op.inputs().size() ||
      out.size() != 1) {
    return false;
  }
  Device* device = t_state.scope ? t_state.scope_device
                                 : &DeviceManager::get().default_device();
  if (device == nullptr || !device->runs_inline() ||
      g_log_device_placement.load(std::memory_order_relaxed)) {
    return false;
  }
  const TensorImpl* a = in[0]->impl();
  const TensorImpl* b = in.back()->impl();
  if (a == nullptr || b == nullptr) return false;
  if (a->kind != TensorKind::kConcrete || b->kind != TensorKind::kConcrete ||
      a->block->device != device || b->block->device != device ||
      a->dtype != b->dtype ||
      a->block->borrowed.load(std::memory_order_acquire) ||
      b->block->borrowed.load(std::memory_order_acquire)) {
    return false;
  }
  const DirectKernel kernel = device->kernels().fast(op.id(), a->dtype);
  if (kernel == nullptr) return false;
  Tensor result;
  if (op.infer() == &infer_broadcast && a->shape == b->shape) {
    if (a->shape.num_elements() > kWorthCutting) return false;
    result = make_tensor(*device, a->dtype, a->shape);
  } else {
    const SpecView specs[2] = {{a->dtype, &a->shape, DType::kInvalid},
                               {b->dtype, &b->shape, DType::kInvalid}};
    OutSpec spec;
    InferContext c(op, attrs, {specs, in.size()}, {&spec, 1});
    op.infer()(c);
    if (spec.shape.num_elements() > kWorthCutting) return false;
    result = make_tensor(*device, spec.dtype, spec.shape);
  }
  const TensorImpl& r = *result.impl();
  name_holder(r.block, op.name().c_str(), t_state.site);
  const View views[3] = {{a->data(), &a->shape, a->dtype},
                         {b->data(), &b->shape, b->dtype},
                         {r.data(), &r.shape, r.dtype}};
  KernelContext context;
  context.stream = &device->compute_stream();
  try {
    kernel({&op, attrs, views, &views[2], static_cast<int>(in.size()), 1,
            &context});
  } catch (const errors::Error& e) {
    raise_with_place(e, t_state.layer, t_state.site);
  }
  out[0] = std::move(result);
  return true;
}

}  // namespace

namespace {

void apply_here(const OpDef& op, std::span<const Tensor* const> in,
                const Attrs* attrs, std::span<Tensor> out) {
  if (!contracts_open() && try_fast(op, in, attrs, out)) [[likely]]
    return;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i]->defined()) empty_input(op, static_cast<int>(i));
  }
  switch (op.kind()) {
    case OpKind::kCompute:
    case OpKind::kAlias:
      return compute(op, in, attrs, out);
    case OpKind::kReadVariable:
      if (g_log_device_placement.load(std::memory_order_relaxed)) [[unlikely]] {
        log_placement(op, *in[0]->impl()->device);
      }
      out[0] = read_variable(*in[0]);
      return;
    case OpKind::kCall:
      return op.attr<std::shared_ptr<Callable>>(attrs, "f")->call(in, out);
    case OpKind::kControl:
      return call_control(op, in, attrs, out);
    default:
      break;
  }
  throw errors::InvalidArgument(
      fmt::format("{} exists only inside graphs", op.name()));
}

}  // namespace

void eager_apply(const OpDef& op, std::span<const Tensor* const> in,
                 const Attrs* attrs, std::span<Tensor> out) {
  const timeline::MaybeSpan span("eager ops", op.name(), op.name().c_str(),
                                 t_state.site);
  apply_here(op, in, attrs, out);
  if (g_check_numerics.load(std::memory_order_relaxed)) [[unlikely]] {
    check_numerics(op, in, out);
  }
  if (const OpWatcher watch = g_op_watcher.load(std::memory_order_relaxed))
      [[unlikely]] {
    watch(op, out);
  }
  if (g_checksums.load(std::memory_order_relaxed)) [[unlikely]] {
    record_checksums(op, out);
  }
}

}  // namespace berth
