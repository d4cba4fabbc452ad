#include "device/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/environment.h"
#include "berth/errors.h"
#include "device/opening.h"

namespace berth {

namespace {

namespace fs = std::filesystem;

bool is_plugin_name(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("libberth_") && name.ends_with(".so");
}

void add_folder(const fs::path& folder, std::vector<fs::path>* paths) {
  std::error_code ignored;  // a folder that cannot be read has no plug-ins
  const size_t before = paths->size();
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_plugin_name(entry.path())) paths->push_back(entry.path());
  }
  std::sort(paths->begin() + static_cast<ptrdiff_t>(before), paths->end());
}

// The folder of libberth.so.
fs::path own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&add_plugins), &info) == 0 ||
      info.dli_fname == nullptr) {
    return {};
  }
  std::error_code ignored;
  return fs::absolute(info.dli_fname, ignored).parent_path();
}

// Those that are listed, then those beside the library.
std::vector<fs::path> plugin_paths() {
  std::vector<fs::path> paths;
  const std::string listed = environment("BERTH_PLUGINS");
  for (size_t begin = 0; begin < listed.size();) {
    const size_t end = std::min(listed.find(':', begin), listed.size());
    const std::string one = listed.substr(begin, end - begin);
    begin = end + 1;
    if (one.empty()) continue;
    std::error_code ignored;
    if (fs::is_directory(one, ignored)) {
      add_folder(one, &paths);
    } else if (fs::is_regular_file(one, ignored)) {
      paths.push_back(fs::absolute(one, ignored));
    } else {
      throw errors::InvalidArgument(fmt::format(
          "BERTH_PLUGINS names '{}', which does not exist; expected files "
          "libberth_<name>.so, or folders of them, separated by colons",
          one));
    }
  }
  add_folder(own_folder(), &paths);
  return paths;
}

// Why the plug-in at `path` was not added; "" when it was, or, without a name,
// when it is none but what another opens. `added`: the names of those before.
std::string add_plugin(const fs::path& path, BackendRegistry& registry,
                       std::set<std::string>& added, std::string* name) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  const auto* plugin =
      static_cast<const Plugin*>(dlsym(library, "berth_plugin"));
  if (plugin == nullptr) {
    if (dlsym(library, "berth_opened_by_plugin") != nullptr) return "";
    return "it has no symbol berth_plugin; expected a library that says "
           "BERTH_PLUGIN(...)";
  }
  *name = plugin->name;
  if (std::strcmp(plugin->build_id, BERTH_BUILD_ID) != 0) {
    return fmt::format(
        "it was built for another libberth (build id {}, this one is {}): "
        "build it again with the headers of this one",
        plugin->build_id, BERTH_BUILD_ID);
  }
  if (!added.insert(*name).second) {
    return "another plug-in of its name, " + *name + ", was opened before it";
  }
  std::string why;
  if (!plugin->add(registry, why)) {
    return why.empty() ? "it failed without a reason" : why;
  }
  return "";
}

}  // namespace

std::vector<PluginReport> add_plugins(BackendRegistry& registry) {
  std::vector<PluginReport> reports;
  std::set<std::string> added;
  for (const fs::path& path : plugin_paths()) {
    PluginReport report{path.string(), "", ""};
    report.why = add_plugin(path, registry, added, &report.name);
    if (report.name.empty() && report.why.empty()) continue;
    reports.push_back(std::move(report));
  }
  return reports;
}

BackendRegistry find_backends() {
  BackendRegistry registry;
  register_all_backends(registry);
  if (const Opening opening; opening) {
    registry.plugins() = add_plugins(registry);
  }
  return registry;
}

}  // namespace berth
