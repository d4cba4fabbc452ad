// Plug-ins of the library's own: parts that most programs never use, with the
// libraries that they need. They are in the folder `berth` beside libberth.so,
// which is not searched for backends, and are opened at the first use. One
// stays open until the process ends. Thread-safe.

#ifndef BERTH_DEVICE_INNER_PLUGIN_H_
#define BERTH_DEVICE_INNER_PLUGIN_H_

#include <string>

namespace berth {

struct InnerPlugin {
  const void* symbol = nullptr;
  std::string path;  // where it is looked for
  std::string why;   // why `symbol` is null
};

// Opens `file` and returns its `symbol`: a struct whose first member is the
// build id (const char*) that it was built with. One of another build is
// refused.
InnerPlugin open_inner_plugin(const char* file, const char* symbol);

}  // namespace berth

#endif  // BERTH_DEVICE_INNER_PLUGIN_H_
