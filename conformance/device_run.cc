#include "conformance/device_run.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/environment.h"
#include "berth/device.h"
#include "device/device_manager.h"
#include "op/dispatcher.h"
#include "op/kernel.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::conformance {

namespace {

Device* g_device = nullptr;

}  // namespace

namespace {

// That the environment asks for GPUs, which may stand in for some.
bool gpus_asked() {
  const std::string sim = environment("BERTH_SIM");
  return !sim.empty() || environment("BERTH_OPENCL") == "all";
}

}  // namespace

void choose_device(const std::string& name) {
  const std::string wanted =
      !name.empty() ? name : (gpus_asked() ? "/GPU:0" : "/CPU:0");
  g_device = &DeviceManager::get().lookup(DeviceName::parse(wanted));
}

Device& device_under_test() {
  if (!g_device) choose_device("");
  return *g_device;
}

const KernelTable* kernels_on_host() {
  Device& d = device_under_test();
  return d.runs_inline() || d.simulated() ? &d.kernels() : nullptr;
}

Tensor to_device(const Array& a) {
  Tensor t = make_tensor(DeviceManager::get().host(), a.dtype(), a.shape());
  if (a.size() > 0) std::memcpy(t.impl()->data(), a.data(), a.size_bytes());
  return copy_to_device(t, device_under_test());
}

Tensor to_variable(const Array& a) {
  Device& device = device_under_test();
  const Tensor handle =
      make_variable(device, "v", a.dtype(), a.shape(), true, Site::here());
  if (a.size() > 0) {
    device.copy_from_host(variable_state(handle).storage->data, a.data(),
                          a.size_bytes());
  }
  return handle;
}

Array to_host(const Tensor& t) {
  Array a(t.dtype(), t.shape());
  if (a.size() > 0) t.copy_to(a.data());
  return a;
}

Array value_of(const Tensor& handle) { return to_host(read_variable(handle)); }

Tensors to_device(const Case& c, const Arrays& in) {
  Tensors tensors;
  for (size_t i = 0; i < in.size(); ++i) {
    tensors.push_back(c.inputs[i].variable ? to_variable(in[i])
                                           : to_device(in[i]));
  }
  return tensors;
}

Tensors call_on_device(const OpDef& op, const Tensors& in, const Attrs* attrs) {
  const auto on = berth::device(device_under_test().str());
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : in) pointers.push_back(&t);
  Tensors out(static_cast<size_t>(op.num_outputs(attrs)));
  apply(op, pointers, attrs, out);
  return out;
}

void litter(const std::vector<OutSpec>& outputs) {
  Tensors held;
  for (const OutSpec& o : outputs) {
    held.push_back(to_device(Array(o.dtype, o.shape)));
  }
  for (const Tensor& t : held) {
    if (t.num_elements() > 0) to_host(t);  // wait until it is there
  }
}

bool accelerator_lacks(const OpDef& op) {
  const Device& d = device_under_test();
  // With reference kernels alone a CPU lacks what libraries do, such as LAPACK.
  const char* kernels = std::getenv("BERTH_CPU_KERNELS");
  const bool all = kernels == nullptr || std::string(kernels) == "all";
  return (d.type() != "CPU" || !all) && op.kind() == OpKind::kCompute &&
         op.decompose() == nullptr && d.kernels().candidates(op).empty();
}

bool device_can_run(const OpDef& op, DType dtype) {
  return can_run(device_under_test().kernels(), op, dtype);
}

}  // namespace berth::conformance
