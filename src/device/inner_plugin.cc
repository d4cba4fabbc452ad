#include "device/inner_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "berth/device/build_id.h"
#include "device/opening.h"

namespace berth {

namespace {

namespace fs = std::filesystem;

std::string path_of(const char* file) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&open_inner_plugin), &info) == 0 ||
      info.dli_fname == nullptr) {
    return file;
  }
  std::error_code ignored;
  const fs::path folder = fs::absolute(info.dli_fname, ignored).parent_path();
  return (folder / "berth" / file).string();
}

}  // namespace

InnerPlugin open_inner_plugin(const char* file, const char* symbol) {
  InnerPlugin plugin{nullptr, path_of(file), ""};
  const Opening opening;
  if (!opening) {
    plugin.why = "the process is about to end";
    return plugin;
  }
  void* library = dlopen(plugin.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    plugin.why = dlerror();
    return plugin;
  }
  const void* found = dlsym(library, symbol);
  if (found == nullptr) {
    plugin.why = fmt::format("it has no symbol {}", symbol);
    return plugin;
  }
  const char* build_id = *static_cast<const char* const*>(found);
  if (std::strcmp(build_id, BERTH_BUILD_ID) != 0) {
    plugin.why = fmt::format(
        "it was built for another libberth (build id {}, this one is {})",
        build_id, BERTH_BUILD_ID);
    return plugin;
  }
  plugin.symbol = found;
  return plugin;
}

}  // namespace berth
