#include "io/network.h"

#include <fmt/format.h>

#include <mutex>

#include "base/immortal.h"
#include "berth/errors.h"
#include "device/inner_plugin.h"

namespace berth::io {

namespace {

struct InUse {
  std::mutex mutex;
  Network* network = nullptr;
};

InUse& in_use() {
  static auto& one = immortal<InUse>();
  return one;
}

}  // namespace

Network& network() {
  std::lock_guard lock(in_use().mutex);
  Network*& one = in_use().network;
  if (one == nullptr) {
    const InnerPlugin plugin =
        open_inner_plugin("libberth_fetch.so", "berth_fetch_plugin");
    if (plugin.symbol == nullptr) {
      throw errors::FailedPrecondition(fmt::format(
          "downloads and checksums need {}, which cannot be opened: {}; "
          "install the folder `berth` beside libberth.so, and libcurl and "
          "OpenSSL",
          plugin.path, plugin.why));
    }
    one = static_cast<const FetchPlugin*>(plugin.symbol)->make();
  }
  return *one;
}

void set_network(std::unique_ptr<Network> mine) {
  std::lock_guard lock(in_use().mutex);
  in_use().network = mine.release();  // another thread may use the one before
}

}  // namespace berth::io
