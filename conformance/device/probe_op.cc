#include "conformance/device/probe_op.h"

#include <algorithm>

#include "berth/custom_op.h"

namespace berth::conformance {

std::atomic<Stream*> g_probed{nullptr};

namespace {

void probe(const KernelCall& call) {
  g_probed = call.context->stream;
  std::copy_n(call.in[0].as<float>(), call.in[0].size(),
              call.out[0].as<float>());
}

}  // namespace

void register_probe() {
  register_op("Probe")
      .input("x", dtype_bit(float32))
      .output("y")
      .infer(&infer_same_as_0)
      .not_differentiable();
  for (const char* type : {"CPU", "GPU", "SKELETON"}) {
    register_kernels(type, [](KernelTable& table) {
      table.direct("Probe", dtype_bit(float32), &probe, "probe");
    });
  }
}

}  // namespace berth::conformance
