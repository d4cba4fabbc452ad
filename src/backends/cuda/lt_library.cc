#include "backends/cuda/lt_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "backends/cuda/library_folders.h"
#include "base/immortal.h"

namespace berth::cuda {

namespace {

constexpr char kLtName[] = "libcublasLt.so.13";

// The first function that the library lacks; null: none.
const char* fill_lt(void* library, LtLibrary& lt) {
#define BERTH_LT_FIND(call)                                             \
  lt.call = reinterpret_cast<decltype(&::call)>(dlsym(library, #call)); \
  if (lt.call == nullptr) return #call;
  BERTH_LT_CALLS(BERTH_LT_FIND)
#undef BERTH_LT_FIND
  return nullptr;
}

// Opens the first that fits; else says what was tried.
bool open_lt(LtLibrary& lt, std::string& tried) {
  for (const std::string& folder : library_folders()) {
    const std::string path = folder.empty() ? kLtName : folder + "/" + kLtName;
    std::error_code ignored;
    const bool there = folder.empty() || std::filesystem::exists(path, ignored);
    void* library =
        there ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    const char* lacks = library == nullptr ? nullptr : fill_lt(library, lt);
    if (library != nullptr && lacks == nullptr) return true;
    tried += tried.empty() ? "" : ", ";
    tried += folder.empty() ? "where the system looks" : folder;
    if (lacks != nullptr) {
      tried += fmt::format(" (it has no {})", lacks);
    } else if (there && !folder.empty()) {
      tried += fmt::format(" ({})", dlerror());
    }
  }
  return false;
}

struct FoundLt {
  LtLibrary lt;
  std::string why;

  FoundLt() {
    std::string tried;
    if (open_lt(lt, tried)) return;
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
