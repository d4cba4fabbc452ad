#include "backends/cuda/cudnn_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "backends/cuda/library_folders.h"
#include "base/environment.h"
#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::cuda {

namespace {

namespace fs = std::filesystem;

constexpr char kOwnLibrary[] = "libberth_cudnn.so";
constexpr char kCudnn[] = "libcudnn.so.9";
constexpr char kRuntime[] = "libcudart.so.13";

// Returns the table from the first folder that has the library.
const BerthCudnnApi* find_table(const std::vector<std::string>& folders,
                                std::string* why) {
  *why = fmt::format("there is no {} beside the CUDA plug-in", kOwnLibrary);
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + kOwnLibrary;
    std::error_code ignored;
    if (folder.empty() || !fs::exists(path, ignored)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      *why = dlerror();
      continue;
    }
    const auto* api =
        static_cast<const BerthCudnnApi*>(dlsym(library, "berth_cudnn_api"));
    if (api != nullptr && api->version == BERTH_CUDNN_API_VERSION) return api;
    *why = fmt::format("{} is of another version of Berth", path);
  }
  return nullptr;
}

// Opens the CUDA runtime from the first folder that has it: runs of attention
// find it by its plain name then, wherever it lies.
void open_runtime(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::string path = (folder.empty() ? "" : folder + "/") + kRuntime;
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
  }
}

struct FoundCudnn {
  const BerthCudnnApi* api = nullptr;
  bool is_built = false;
  std::string why;

  FoundCudnn() {
    try {
      if (environment_choice("BERTH_CUDNN", {"on", "off"}) == "off") {
        why = "BERTH_CUDNN=off";
        return;
      }
      is_built = find_table(library_folders(), &why) != nullptr;
      api = open_cudnn(library_folders(), library_folders("cudnn"), &why);
    } catch (const errors::Error& e) {
      why = e.what();
    }
  }
};

}  // namespace

const BerthCudnnApi* open_cudnn(const std::vector<std::string>& own,
                                const std::vector<std::string>& cudnn,
                                std::string* why) {
  const BerthCudnnApi* api = find_table(own, why);
  if (api == nullptr) return nullptr;
  open_runtime(own);
  std::string tried;
  for (const std::string& folder : cudnn) {
    std::error_code ignored;
    if (!folder.empty() && !fs::exists(folder + "/" + kCudnn, ignored)) {
      continue;
    }
    char reason[BERTH_CUDNN_WHY_BYTES] = "";
    if (api->open(folder.c_str(), reason) == 0) {
      why->clear();
      return api;
    }
    tried +=
        fmt::format("{}{} ({})", tried.empty() ? "" : ", ",
                    folder.empty() ? "where the system looks" : folder, reason);
  }
  *why = fmt::format(
      "{} does not open: install cuDNN 9 for CUDA 13 (pip install "
      "nvidia-cudnn-cu13), or name its folder in BERTH_CUDA_LIBRARIES; "
      "tried: {}",
      kCudnn, tried.empty() ? "no folder has it" : tried);
  return nullptr;
}

const BerthCudnnApi* cudnn_library(std::string* why, bool* is_built) {
  static const auto& found = immortal<FoundCudnn>();
  *why = found.why;
  *is_built = found.is_built;
  return found.api;
}

}  // namespace berth::cuda
