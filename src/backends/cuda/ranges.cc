#include "backends/cuda/ranges.h"

#include "base/environment.h"

#ifdef BERTH_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace berth::cuda {

#ifdef BERTH_HAVE_NVTX
bool ranges_asked() {
  static const bool asked = environment_switch(
      "BERTH_NVTX", !environment("NVTX_INJECTION64_PATH").empty());
  return asked;
}
void begin_range(const char* name) noexcept { nvtxRangePushA(name); }
void end_range() noexcept { nvtxRangePop(); }
#else
bool ranges_asked() { return false; }
void begin_range(const char*) noexcept {}
void end_range() noexcept {}
#endif

}  // namespace berth::cuda
