// BERTH_PROFILE=FILE: the whole process is recorded, and written at its end;
// with BERTH_PROFILE_CHECKSUMS=1 also checksums of what is computed.

#include <fmt/format.h>

#include <cstdio>

#include "base/checksum.h"
#include "base/environment.h"
#include "base/timeline.h"
#include "berth/profiler.h"

namespace berth::profiler {

namespace {

// What each thread may keep.
constexpr int64_t kMostEvents = int64_t{1} << 20;

// Nothing of the engine is destroyed before: it is there when it runs.
[[gnu::destructor]] void write_at_end() {
  const std::string path = environment("BERTH_PROFILE");
  // The program may have ended it, or given the variable to others alone.
  if (path.empty() || !timeline::is_on()) return;
  try {
    const Timeline t = stop();
    t.write(path);
    std::string lost;
    if (t.dropped() > 0) {
      lost = fmt::format(", the last of {}", t.events().size() + t.dropped());
    }
    std::fprintf(stderr, "berth: %s has %zu events%s; berth report %s\n",
                 path.c_str(), t.events().size(), lost.c_str(), path.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "berth: BERTH_PROFILE: %s\n", e.what());
  }
}

[[maybe_unused]] const bool g_begun = [] {
  if (environment("BERTH_PROFILE").empty()) return false;
  g_checksums = environment("BERTH_PROFILE_CHECKSUMS") == "1";
  return timeline::start(kMostEvents);
}();

}  // namespace

}  // namespace berth::profiler
