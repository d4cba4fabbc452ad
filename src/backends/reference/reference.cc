#include "backends/reference/reference.h"

#include "base/immortal.h"
#include "device/backend_registry.h"

namespace berth {

namespace reference {

void add_host_only(KernelTable& t) {
  for (AddKernels* add : {add_linalg, add_ctc, add_suppression,
                          add_distributions, add_host_functions}) {
    add(t);
  }
}

const KernelTable& kernels() {
  static const auto& table = immortal<KernelTable>([] {
    KernelTable t;
    for (AddKernels* add :
         {add_elementwise, add_compare,   add_reduce,     add_matmul,
          add_array,       add_variable,  add_layout,     add_slice,
          add_gather,      add_rearrange, add_shape_ops,  add_scatter,
          add_sort,        add_dynamic,   add_random,     add_host_only,
          add_nn,          add_softmax,   add_conv,       add_pool,
          add_norm,        add_attention, add_layer_norm, add_training,
          add_functions,   add_scan,      add_lstm,       add_complex}) {
      add(t);
    }
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
