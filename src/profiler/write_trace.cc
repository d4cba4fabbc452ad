// Timeline::write(): a file of the format that its name asks for.

#include <fmt/format.h>

#include <fstream>

#include "berth/errors.h"
#include "berth/profiler.h"

namespace berth::profiler {

void Timeline::write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary);
  out << (path.ends_with(".pftrace") ? perfetto() : json());
  out.close();
  if (out) return;
  throw errors::InvalidArgument(fmt::format(
      "profiler: \"{}\" cannot be written; expected a path in a folder that "
      "exists, with room",
      path));
}

}  // namespace berth::profiler
