// Fuzz target of device names and device lists: any text is a name that prints
// to itself and merges with others, or a named error.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "berth/errors.h"
#include "device/device_name.h"
#include "device/runtime_config.h"

namespace {

using berth::DeviceName;

void require(bool holds) {
  if (!holds) std::abort();
}

// False: refused.
bool parse(std::string_view text, DeviceName* name) {
  try {
    *name = DeviceName::parse(text);
  } catch (const berth::errors::InvalidArgument& e) {
    require(std::string_view(e.what()).starts_with("malformed device name"));
    return false;
  }
  require(DeviceName::parse(name->str()) == *name);
  require(name->str().empty() == name->empty());
  return true;
}

void check_merge(const DeviceName& inner, const DeviceName& outer) {
  const DeviceName both = inner.merged_over(outer);
  require(DeviceName::parse(both.str()) == both);
  require(both.merged_over(outer) == both);
  if (both.is_complete()) require(inner.matches(both));
  require(DeviceName().matches(both));
}

void check_list(std::string_view text) {
  try {
    for (const berth::DeviceListEntry& e : berth::parse_device_list(text)) {
      require(!e.type.empty() && e.count >= 0);
    }
  } catch (const berth::errors::InvalidArgument&) {
  }
}

}  // namespace

// The input: two names (or lists) with a line break between them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(text.find('\n'), text.size());
  const std::string_view first = text.substr(0, cut);
  const std::string_view second = text.substr(std::min(cut + 1, text.size()));
  check_list(first);
  DeviceName a, b;
  const bool both = parse(first, &a) && parse(second, &b);
  if (!both) return 0;
  check_merge(a, b);
  check_merge(b, a);
  check_merge(a, DeviceName{"localhost", 0, 0, "CPU", 0});
  return 0;
}
