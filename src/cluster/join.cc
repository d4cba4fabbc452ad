#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <mutex>

#include "base/immortal.h"
#include "base/where.h"
#include "cluster/rpc_plugin.h"

namespace berth::cluster {

namespace {

namespace fs = std::filesystem;

fs::path rpc_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&Member::join), &info) == 0 ||
      info.dli_fname == nullptr) {
    return {};
  }
  std::error_code ignored;
  return fs::absolute(info.dli_fname, ignored).parent_path() / "berth" /
         "libberth_rpc.so";
}

const RpcPlugin& open_rpc_plugin(Site site) {
  static auto& mutex = immortal<std::mutex>();
  static const RpcPlugin* opened = nullptr;
  std::lock_guard lock(mutex);
  if (opened) return *opened;
  const fs::path path = rpc_library();
  const auto refuse = [&](const std::string& why) {
    throw errors::FailedPrecondition(fmt::format(
        "several processes need {}, which cannot be opened{}: {}; build "
        "Berth where libgrpc++-dev and libgloo-dev are installed (`./dev "
        "build`), and install the folder `berth` beside libberth.so",
        path.string(), where_text(nullptr, site), why));
  };
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(dlerror());
  const auto* plugin =
      static_cast<const RpcPlugin*>(dlsym(library, "berth_rpc_plugin"));
  if (plugin == nullptr) refuse("it has no symbol berth_rpc_plugin");
  if (std::strcmp(plugin->build_id, BERTH_BUILD_ID) != 0) {
    refuse(
        fmt::format("it was built for another libberth (build id {}, this "
                    "one is {})",
                    plugin->build_id, BERTH_BUILD_ID));
  }
  opened = plugin;
  return *plugin;
}

}  // namespace

std::shared_ptr<Member> Member::join(const ClusterResolver& resolver,
                                     JoinOptions options, Site site) {
  return open_rpc_plugin(site).join(resolver, options, site);
}

std::optional<std::string> Member::probe(const ClusterResolver& resolver,
                                         const TaskId& to, JoinOptions options,
                                         double timeout_seconds, Site site) {
  return open_rpc_plugin(site).probe(resolver, to, options, timeout_seconds);
}

}  // namespace berth::cluster
