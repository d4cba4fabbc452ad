// Mode test: the device under test against the reference kernels.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "berth/device.h"
#include "conformance/device_run.h"
#include "conformance/host_run.h"
#include "conformance/modes.h"

namespace berth::conformance {

namespace {

Tolerance tolerance_of(const Case& c, DType dtype) {
  // Random numbers have float32's precision in every dtype (base/rng.h).
  if (dtype == float32 || dtype == complex64 || c.def().random()) {
    return c.tolerance;
  }
  const bool exact = c.tolerance.rtol == 0 && c.tolerance.atol == 0;
  if (exact) return {};
  // A few units in the last place of 8 and of 11 bits.
  if (dtype == bfloat16) return {2e-2, 2e-2};
  if (dtype == float16) return {3e-3, 3e-3};
  return {1e-10, 1e-12};
}

void expect_close(const Case& c, DType dtype, const Arrays& got,
                  const Arrays& want, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    // Statistics of 16 bits are float32, and as exact.
    const bool kept =
        (kHalfTypes & dtype_bit(dtype)) && got[i].dtype() == float32;
    const Tolerance t = tolerance_of(c, kept ? float32 : dtype);
    EXPECT_EQ(difference(got[i], want[i], t), "") << what << " " << i;
  }
}

void expect_variables(const Case& c, DType dtype, const Arrays& got,
                      const Arrays& want, const char* what) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (!c.inputs[i].variable) continue;
    EXPECT_EQ(difference(got[i], want[i], tolerance_of(c, dtype)), "")
        << what << ", variable " << i;
  }
}

// Unknown dimensions in, unknown out: a rule neither fails nor contradicts
// what it says once everything is known.
void check_unknown_dimensions(const HostCall& call, const Arrays& in) {
  const std::vector<OutSpec> known = infer_on_host(call, in);
  int total = 0;
  for (const Array& a : in) total += a.shape().rank();
  for (int hidden = -1; hidden < total; ++hidden) {  // -1: all of them
    std::vector<Shape> shapes;
    int seen = 0;
    for (const Array& a : in) {
      Shape s = a.shape();
      for (int axis = 0; axis < s.rank(); ++axis, ++seen) {
        if (hidden < 0 || hidden == seen) s[axis] = kUnknownDim;
      }
      shapes.push_back(s);
    }
    std::vector<SpecView> specs;
    for (size_t i = 0; i < in.size(); ++i) {
      specs.push_back(spec_of(call, i, in[i].dtype(), shapes[i]));
    }
    std::vector<OutSpec> out(known.size());
    infer_outputs(*call.op, call.attrs, specs, out);
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_TRUE(out[i].shape.compatible_with(known[i].shape))
          << "shape rule with unknown dimension " << hidden << ": output " << i
          << " is " << out[i].shape.str() << ", really "
          << known[i].shape.str();
      EXPECT_EQ(out[i].dtype, known[i].dtype);
    }
  }
}

void run_through_engine(const Case& c, DType dtype, const Attrs* attrs,
                        const Arrays& in, const HostResult& want) {
  const Tensors args = to_device(c, in);
  HostCall call = host_call(c, AttrsRef::share(attrs));
  litter(infer_on_host(call, in));
  Arrays got;
  for (const Tensor& t : call_on_device(c.def(), args, attrs)) {
    EXPECT_EQ(t.device(), device_under_test().str());
    // Shapes are known on the host.
    if (!c.def().metadata()) {
      EXPECT_EQ(t.backing_device(), t.device());
    }
    got.push_back(to_host(t));
  }
  expect_close(c, dtype, got, want.outputs, "output");
  Arrays variables = in;
  for (size_t i = 0; i < in.size(); ++i) {
    if (c.inputs[i].variable) variables[i] = value_of(args[i]);
  }
  expect_variables(c, dtype, variables, want.inputs, "engine");
}

// The kernels alone, between sentinels: on this thread, and forked.
void run_kernels(const Case& c, DType dtype, HostCall call, const Arrays& in,
                 const HostResult& want) {
  const KernelTable* table = kernels_on_host();
  if (!table) return;
  for (const int slices : {1, 3}) {
    if (slices > 1 && !device_under_test().pool()) continue;
    Arrays args = in;
    call.slices = slices;
    call.pool = slices > 1 ? device_under_test().pool() : nullptr;
    // Not all threads of a pool are warm after one run.
    call.check_warm_run = slices == 1;
    const Arrays got = run_on_host(*table, call, &args);
    expect_close(c, dtype, got, want.outputs,
                 slices > 1 ? "forked kernel" : "kernel");
    expect_variables(c, dtype, args, want.inputs, "kernel");
  }
}

void run_decomposition(const Case& c, DType dtype, const Attrs* attrs,
                       const Arrays& in, const HostResult& want) {
  if (!c.def().decompose()) return;
  const auto on = berth::device(device_under_test().str());
  Arrays got;
  for (const Tensor& t :
       c.def().decompose()(to_device(c, in), c.def(), attrs)) {
    got.push_back(to_host(t));
  }
  expect_close(c, dtype, got, want.outputs, "decomposition");
}

}  // namespace

std::vector<DType> dtypes_of(const Case& c) {
  std::vector<DType> list;
  for (const DType d : kRunTypes) {
    if (c.dtypes & dtype_bit(d)) list.push_back(d);
  }
  return list;
}

void test_case(const Case& c, DType dtype) {
  const AttrsRef attrs = c.attrs_for(dtype);
  const HostCall call = host_call(c, attrs);
  const Arrays in = make_inputs(c, dtype);
  if (c.needs_dimensions.empty()) check_unknown_dimensions(call, in);
  const HostResult want = run_oracle(c, dtype, in);
  run_through_engine(c, dtype, attrs.get(), in, want);
  run_kernels(c, dtype, call, in, want);
  run_decomposition(c, dtype, attrs.get(), in, want);
}

}  // namespace berth::conformance
