// Plug-ins: backends in shared libraries, opened at the first device query.
//
// A plug-in is a file libberth_<name>.so, beside libberth.so or named by
// BERTH_PLUGINS (files and folders, separated by colons). It links libberth.so
// and exports one symbol, which BERTH_PLUGIN defines. It is refused, with the
// reason, unless it was built with the headers of this library: both carry the
// id of those. No exception crosses the symbol. A plug-in that was opened stays
// open until the process ends. A library of that name that a plug-in opens by
// itself exports a symbol `berth_opened_by_plugin`, and is passed over.
// Thread-safe.

#ifndef BERTH_DEVICE_PLUGIN_H_
#define BERTH_DEVICE_PLUGIN_H_

#include <exception>
#include <string>
#include <vector>

#include "berth/device/build_id.h"
#include "device/backend_registry.h"

namespace berth {

// What a plug-in's symbol `berth_plugin` is. The first two members never
// change, so that any version can read them.
struct Plugin {
  const char* build_id;
  const char* name;
  // Adds the backend; says into `why` what went wrong, and returns false.
  bool (*add)(BackendRegistry& registry, std::string& why) noexcept;
};

// Makes the symbol of a plug-in: `register_backend` is a function
// void(BackendRegistry&).
#define BERTH_PLUGIN(plugin_name, register_backend)                       \
  extern "C" __attribute__((visibility("default")))                       \
  const ::berth::Plugin berth_plugin = {                                  \
      BERTH_BUILD_ID, plugin_name,                                        \
      [](::berth::BackendRegistry& registry, std::string& why) noexcept { \
        try {                                                             \
          register_backend(registry);                                     \
          return true;                                                    \
        } catch (const std::exception& e) {                               \
          why = e.what();                                                 \
          return false;                                                   \
        }                                                                 \
      }}

// Opens the existing plug-ins and lets them add their backends. Those
// that cannot be opened are left out. Throws errors::InvalidArgument when
// BERTH_PLUGINS names what does not exist.
std::vector<PluginReport> add_plugins(BackendRegistry& registry);

}  // namespace berth

#endif  // BERTH_DEVICE_PLUGIN_H_
