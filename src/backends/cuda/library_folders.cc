#include "backends/cuda/library_folders.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/environment.h"

namespace berth::cuda {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> cut_at_colons(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void add_own_folder(std::vector<std::string>& folders) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&library_folders), &info) == 0 ||
      info.dli_fname == nullptr) {
    return;
  }
  std::error_code ignored;
  folders.push_back(fs::absolute(info.dli_fname, ignored).parent_path());
}

// lib/python3.*/{site,dist}-packages/nvidia/cu13/lib of an environment.
void add_packages(const fs::path& root, std::vector<std::string>& folders) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / "lib", ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path lib = entry.path() / packages / "nvidia" / "cu13" / "lib";
      if (fs::is_directory(lib, ignored) &&
          std::find(folders.begin(), folders.end(), lib) == folders.end()) {
        folders.push_back(lib);
      }
    }
  }
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> folders =
      cut_at_colons(environment("BERTH_CUDA_LIBRARIES"));
  add_own_folder(folders);
  folders.push_back("");
  folders.push_back("/usr/local/cuda/lib64");
  for (const std::string& bin : cut_at_colons(environment("PATH"))) {
    std::error_code ignored;
    const fs::path python = fs::path(bin) / "python3";
    if (!fs::exists(python, ignored)) continue;
    add_packages(fs::path(bin).parent_path(), folders);
    // A link to where it is installed.
    const fs::path real = fs::canonical(python, ignored);
    if (!real.empty()) add_packages(real.parent_path().parent_path(), folders);
  }
  return folders;
}

}  // namespace berth::cuda
