#include "conformance/oracle/oracle.h"

#include "backends/reference/reference.h"

namespace berth::conformance {

const KernelTable& oracle_kernels() {
  static const KernelTable table = [] {
    KernelTable t;
    t.append(reference::kernels());
    add_factor(t);
    add_fourier(t);
    return t;
  }();
  return table;
}

}  // namespace berth::conformance
