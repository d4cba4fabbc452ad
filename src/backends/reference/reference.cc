#include "backends/reference/reference.h"

#include "base/immortal.h"
#include "device/backend_registry.h"

namespace berth {

namespace reference {

void add_host_only(KernelTable& t) {
  add_linalg(t);
  add_ctc(t);
  add_suppression(t);
  add_distributions(t);
  add_host_functions(t);
}

const KernelTable& kernels() {
  static const auto& table = immortal<KernelTable>([] {
    KernelTable t;
    add_elementwise(t);
    add_compare(t);
    add_reduce(t);
    add_matmul(t);
    add_array(t);
    add_variable(t);
    add_layout(t);
    add_slice(t);
    add_gather(t);
    add_rearrange(t);
    add_shape_ops(t);
    add_scatter(t);
    add_sort(t);
    add_dynamic(t);
    add_random(t);
    add_host_only(t);
    add_nn(t);
    add_softmax(t);
    add_conv(t);
    add_pool(t);
    add_norm(t);
    add_attention(t);
    add_layer_norm(t);
    add_training(t);
    add_functions(t);
    add_scan(t);
    add_lstm(t);
    add_complex(t);
    add_widened(t);  // must follow the kernels it uses
    return t;
  }());
  return table;
}

}  // namespace reference

// A library of kernels, without devices of its own.
void register_reference(BackendRegistry& registry) {
  registry.offer_kernels("reference", &reference::kernels());
}

}  // namespace berth
