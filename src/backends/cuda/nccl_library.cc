#include "backends/cuda/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "backends/cuda/library_folders.h"
#include "base/environment.h"
#include "base/immortal.h"

namespace berth::cuda {

namespace {

constexpr char kNcclFile[] = "libnccl.so.2";
constexpr int kOldestNccl = 21400;
constexpr char kInstallNccl[] =
    "install it (pip install nvidia-nccl-cu13), or name its folder in "
    "BERTH_CUDA_LIBRARIES";

// Returns the first function that the library lacks, or null.
const char* fill_nccl(void* library, NcclCalls& calls) {
#define BERTH_NCCL_FIND(call, ...)                                        \
  calls.call =                                                            \
      reinterpret_cast<decltype(NcclCalls::call)>(dlsym(library, #call)); \
  if (calls.call == nullptr) return #call;
  BERTH_NCCL_CALLS(BERTH_NCCL_FIND)
#undef BERTH_NCCL_FIND
  return nullptr;
}

}  // namespace

struct NcclFound {
  Nccl nccl;
  std::string why;

  NcclFound() {
    if (environment_choice("BERTH_COLLECTIVES", {"auto", "own", "nccl"}) ==
        "own") {
      why = "BERTH_COLLECTIVES=own";
      return;
    }
    std::string tried;
    const auto fill = [this](void* library) {
      return fill_nccl(library, nccl.calls_);
    };
    if (!open_library(kNcclFile, library_folders("nccl"), fill, &tried)) {
      why = fmt::format("there is no {}: {}; looked into: {}", kNcclFile,
                        kInstallNccl, tried);
      return;
    }
    const NcclResult result = nccl.calls_.ncclGetVersion(&nccl.version_);
    if (result != kNcclSuccess) {
      why = fmt::format("NCCL does not work: {}",
                        nccl.text_of("ncclGetVersion", result, nullptr));
    } else if (nccl.version_ < kOldestNccl) {
      why = fmt::format("{} is too old, 2.14 or newer is needed: {}",
                        nccl.description(), kInstallNccl);
    }
  }
};

const Nccl* Nccl::find(std::string* why) {
  static const auto& found = immortal<NcclFound>();
  *why = found.why;
  return found.why.empty() ? &found.nccl : nullptr;
}

std::string Nccl::description() const {
  // Before 2.9 the minor number had one digit less.
  if (version_ < 10000) {
    return fmt::format("NCCL {}.{}.{}", version_ / 1000, version_ / 100 % 10,
                       version_ % 100);
  }
  return fmt::format("NCCL {}.{}.{}", version_ / 10000, version_ / 100 % 100,
                     version_ % 100);
}

std::string Nccl::text_of(const char* call, NcclResult result,
                          NcclComm comm) const {
  const char* name = calls_.ncclGetErrorString(result);
  std::string text =
      fmt::format("{}: {} ({})", call, name ? name : "an error", result);
  const char* more = calls_.ncclGetLastError(comm);
  if (more != nullptr && *more != '\0') text += fmt::format(": {}", more);
  return text;
}

}  // namespace berth::cuda
