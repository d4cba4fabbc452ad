#include "conformance/host_run.h"

#include <fmt/format.h>

#include <cstring>

#include "berth/errors.h"
#include "conformance/allocations.h"
#include "conformance/oracle/oracle.h"
#include "device/device_manager.h"
#include "op/dispatcher.h"
#include "tensor/tensor_impl.h"

namespace berth::conformance {

namespace {

Array to_array(const Tensor& t) {
  Array a(t.dtype(), t.shape());
  if (a.size() > 0) t.copy_to(a.data());
  return a;
}

Tensor to_host_tensor(const Array& a) {
  Tensor t = make_tensor(DeviceManager::get().host(), a.dtype(), a.shape());
  if (a.size() > 0) std::memcpy(t.impl()->data(), a.data(), a.size_bytes());
  return t;
}

// Catches the ops of a decomposition and runs them on the table.
class HostDispatcher final : public Dispatcher {
 public:
  explicit HostDispatcher(const KernelTable& table) : table_(table) { push(); }
  ~HostDispatcher() override { pop(); }

  void apply(const OpDef& op, std::span<const Tensor* const> in,
             const Attrs* attrs, std::span<Tensor> out) override {
    Arrays arrays;
    for (const Tensor* t : in) arrays.push_back(to_array(*t));
    const HostCall call{.op = &op, .attrs = attrs};
    const Arrays results = run_on_host(table_, call, &arrays);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = to_host_tensor(results[i]);
    }
  }

 private:
  const KernelTable& table_;
};

Arrays decompose(const KernelTable& table, const HostCall& call,
                 const Arrays& in) {
  Tensors args;
  for (const Array& a : in) args.push_back(to_host_tensor(a));
  const HostDispatcher dispatcher(table);
  Arrays outputs;
  for (const Tensor& t : call.op->decompose()(args, *call.op, call.attrs)) {
    outputs.push_back(to_array(t));
  }
  return outputs;
}

void check_guards(const HostCall& call, const Arrays& arrays,
                  const char* what) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].guards_intact()) continue;
    throw errors::Internal(fmt::format("{}: the kernel wrote outside {} {}",
                                       call.op->name(), what, i));
  }
}

}  // namespace

SpecView spec_of(const HostCall& call, size_t i, DType dtype,
                 const Shape& shape) {
  const bool variable = i < call.variables.size() && call.variables[i];
  if (variable) return {resource, &shape, dtype};
  return {dtype, &shape};
}

std::vector<SpecView> specs_of(const HostCall& call, const Arrays& in) {
  std::vector<SpecView> specs;
  for (size_t i = 0; i < in.size(); ++i) {
    specs.push_back(spec_of(call, i, in[i].dtype(), in[i].shape()));
  }
  return specs;
}

HostCall host_call(const Case& c, const AttrsRef& attrs) {
  HostCall call{.op = &c.def(), .attrs = attrs.get()};
  for (const Input& i : c.inputs) call.variables.push_back(i.variable);
  return call;
}

std::vector<OutSpec> infer_on_host(const HostCall& call, const Arrays& in) {
  if (call.outputs) return *call.outputs;
  const std::vector<SpecView> specs = specs_of(call, in);
  std::vector<OutSpec> out(
      static_cast<size_t>(call.op->num_outputs(call.attrs)));
  infer_outputs(*call.op, call.attrs, specs, out);
  return out;
}

DType kernel_dtype_of(const HostCall& call, const Arrays& in) {
  return kernel_dtype(specs_of(call, in), infer_on_host(call, in));
}

namespace {

// A bound kernel with what one run of it needs.
struct KernelRun {
  KernelRun(const HostCall& c, const BoundKernel& k, Arrays* in,
            Arrays* outputs)
      : call(c),
        kernel(k),
        scratch(
            uint8,
            {kernel.state ? static_cast<int64_t>(kernel.state->scratch_bytes())
                          : 0}) {
    context.pool = call.pool;
    context.slices = call.slices;
    context.scratch = scratch.data();
    context.slice_origin = call.slice_origin;
    context.unsplit = call.unsplit;
    for (Array& a : *in) in_views.push_back(a.view());
    for (Array& a : *outputs) out_views.push_back(a.view());
  }

  void operator()() const {
    kernel.run({call.op, call.attrs, in_views.data(), out_views.data(),
                static_cast<int>(in_views.size()),
                static_cast<int>(out_views.size()), &context});
  }

  const HostCall& call;
  const BoundKernel& kernel;
  Array scratch;
  KernelContext context;
  std::vector<View> in_views, out_views;
};

// The libraries behind these allocate by themselves.
bool allocates(const KernelDef& kernel) {
  return kernel.label == "lapack" || kernel.label == "conv";
}

void check_warm_run(const KernelRun& run) {
  if (allocates(*run.kernel.def)) return;
  const long before = system_allocations();
  run();
  const long n = system_allocations() - before;
  if (n == 0) return;
  throw errors::Internal(fmt::format(
      "{}: a warm run of its kernel \"{}\" asks the system's allocator {} "
      "times; expected 0: backends/reference/scratch.h",
      run.call.op->name(), run.kernel.def->label, n));
}

}  // namespace

Arrays run_on_host(const KernelTable& table, const HostCall& call, Arrays* in) {
  const std::vector<SpecView> specs = specs_of(call, *in);
  const std::vector<OutSpec> out_specs = infer_on_host(call, *in);
  Arrays outputs;
  for (const OutSpec& o : out_specs) outputs.emplace_back(o.dtype, o.shape);
  const OpKind kind = call.op->kind();
  if (kind == OpKind::kAlias || kind == OpKind::kReadVariable) {
    if (outputs[0].size() > 0) {
      std::memcpy(outputs[0].data(), in->at(0).data(), outputs[0].size_bytes());
    }
    return outputs;
  }
  const BoundKernel kernel = bind_kernel(
      table,
      {call.op, call.attrs, specs, out_specs, call.slices, call.unsplit});
  if (!kernel.def) {
    if (call.op->decompose()) return decompose(table, call, *in);
    throw errors::Unimplemented(
        fmt::format("{}: no kernel for these inputs", call.op->name()));
  }
  const Arrays before = *in;
  const KernelRun run(call, kernel, in, &outputs);
  run();
  check_guards(call, *in, "input");
  check_guards(call, outputs, "output");
  if (!run.scratch.guards_intact()) {
    throw errors::Internal(fmt::format(
        "{}: the kernel wrote outside its scratch", call.op->name()));
  }
  for (size_t i = 0; i < in->size(); ++i) {
    if (i < call.variables.size() && call.variables[i]) continue;
    if ((*in)[i].size() > 0 && std::memcmp((*in)[i].data(), before[i].data(),
                                           before[i].size_bytes()) != 0) {
      throw errors::Internal(
          fmt::format("{}: the kernel changed input {}", call.op->name(), i));
    }
  }
  if (call.check_warm_run) {
    Arrays inputs = *in, results = outputs;
    check_warm_run({call, kernel, &inputs, &results});
  }
  return outputs;
}

namespace {

// In what the oracle computes a run in `dtype`.
DType oracle_dtype(const Case& c, DType dtype) {
  const DType wide = dtype == complex64   ? complex128
                     : is_floating(dtype) ? float64
                                          : dtype;
  if (c.def().random() || c.def().kind() != OpKind::kCompute) return dtype;
  return can_run(oracle_kernels(), c.def(), wide) ? wide : dtype;
}

}  // namespace

HostResult run_oracle(const Case& c, DType dtype, const Arrays& in) {
  const DType wide = oracle_dtype(c, dtype);
  HostResult r;
  for (const Array& a : in) {
    // Parameters of norms of 16 bits are float32.
    const bool parameter =
        (kHalfTypes & dtype_bit(dtype)) && a.dtype() == float32;
    r.inputs.push_back(a.dtype() == dtype || parameter ? a.converted(wide) : a);
  }
  const AttrsRef attrs = c.attrs_for(wide);
  r.outputs = run_on_host(oracle_kernels(), host_call(c, attrs), &r.inputs);
  return r;
}

}  // namespace berth::conformance
