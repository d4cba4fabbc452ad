#include "backends/cpu/lapack.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "berth/errors.h"

namespace berth::cpu {

// Another BLAS may be loaded instead of the reference one; its threads would
// compete with our workers. NaN passes through, as everywhere.
void set_up_lapack() {
  static const bool once = [] {
    using Set = void (*)(int);
    for (const char* name :
         {"openblas_set_num_threads", "bli_thread_set_num_threads"}) {
      if (void* set = dlsym(RTLD_DEFAULT, name)) reinterpret_cast<Set>(set)(1);
    }
    LAPACKE_set_nancheck(0);
    return true;
  }();
  (void)once;
}

void check_lapack(const KernelCall& c, int64_t b, lapack_int info,
                  const char* defect) {
  if (info == 0) return;
  if (info < 0) {
    throw errors::ResourceExhausted(fmt::format(
        "{}: LAPACK found no memory (info {})", c.op->name(), info));
  }
  throw errors::InvalidArgument(
      fmt::format("{}: matrix {} of the batch is {} (row {})", c.op->name(), b,
                  defect, info - 1));
}

}  // namespace berth::cpu
