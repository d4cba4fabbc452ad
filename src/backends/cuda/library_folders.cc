#include "backends/cuda/library_folders.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

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

// Adds lib/python3.*/{site,dist}-packages/nvidia/cu13/lib of an environment.
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

// Each library has its own folder: nvidia/cu13/lib, nvidia/cudnn/lib.
void add_beside(const std::string& package, std::vector<std::string>& folders) {
  std::vector<std::string> all;
  for (const fs::path path : folders) {
    all.push_back(path);
    if (path.filename() == "lib" && path.parent_path().filename() == "cu13") {
      all.push_back(path.parent_path().parent_path() / package / "lib");
    }
  }
  folders = std::move(all);
}

}  // namespace

std::vector<std::string> library_folders(const std::string& package) {
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
    // `python` may be a link to where it is installed.
    const fs::path real = fs::canonical(python, ignored);
    if (!real.empty()) add_packages(real.parent_path().parent_path(), folders);
  }
  if (!package.empty()) add_beside(package, folders);
  return folders;
}

bool open_library(const char* name, const std::vector<std::string>& folders,
                  const FillCalls& fill, std::string* tried) {
  for (const std::string& folder : folders) {
    const std::string path = folder.empty() ? name : folder + "/" + name;
    std::error_code ignored;
    const bool there = folder.empty() || fs::exists(path, ignored);
    void* library =
        there ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    const char* lacks = library == nullptr ? nullptr : fill(library);
    if (library != nullptr && lacks == nullptr) return true;
    *tried += tried->empty() ? "" : ", ";
    *tried += folder.empty() ? "where the system looks" : folder;
    if (lacks != nullptr) {
      *tried += fmt::format(" (it has no {})", lacks);
    } else if (there && !folder.empty()) {
      *tried += fmt::format(" ({})", dlerror());
    }
  }
  return false;
}

}  // namespace berth::cuda
