#include "backends/cuda/lt_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "backends/cuda/library_folders.h"
#include "base/immortal.h"

namespace berth::cuda {

namespace {

constexpr char kLtName[] = "libcublasLt.so.13";

// Returns the first function that the library lacks, or null.
const char* fill_lt(void* library, LtLibrary& lt) {
#define BERTH_LT_FIND(call)                                             \
  lt.call = reinterpret_cast<decltype(&::call)>(dlsym(library, #call)); \
  if (lt.call == nullptr) return #call;
  BERTH_LT_CALLS(BERTH_LT_FIND)
#undef BERTH_LT_FIND
  return nullptr;
}

struct FoundLt {
  LtLibrary lt;
  std::string why;

  FoundLt() {
    std::string tried;
    const auto fill = [this](void* library) { return fill_lt(library, lt); };
    if (open_library(kLtName, library_folders(), fill, &tried)) return;
    why = fmt::format(
        "there is no {}: install CUDA 13's cuBLAS (pip install "
        "nvidia-cublas), or name its folder in BERTH_CUDA_LIBRARIES; looked "
        "into: {}",
        kLtName, tried);
  }
};

}  // namespace

std::string LtLibrary::error(const char* call, cublasStatus_t status) const {
  const char* name = cublasLtGetStatusName(status);
  return fmt::format("{}: {} ({})", call,
                     name == nullptr ? "unknown status" : name,
                     static_cast<int>(status));
}

const LtLibrary* lt_library(std::string* why) {
  static const auto& found = immortal<FoundLt>();
  *why = found.why;
  return found.why.empty() ? &found.lt : nullptr;
}

}  // namespace berth::cuda
