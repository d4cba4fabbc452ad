// Locates a fake library: where it was built or, for tests moved elsewhere, in
// a folder of the same name below the folder BERTH_FAKES.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_FILE_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_FILE_H_

#include <filesystem>
#include <string>

#include "base/environment.h"

namespace berth::cuda {

inline std::string fake_file(const char* built) {
  const std::string root = environment("BERTH_FAKES");
  if (root.empty()) return built;
  const std::filesystem::path path(built);
  return root / path.parent_path().filename() / path.filename();
}

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_FILE_H_
