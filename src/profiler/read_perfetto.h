// read_perfetto: the timeline of a text that Timeline::perfetto() returned.
// Thread-safe.

#ifndef BERTH_PROFILER_READ_PERFETTO_H_
#define BERTH_PROFILER_READ_PERFETTO_H_

#include <string>
#include <string_view>

#include "berth/profiler.h"

namespace berth::profiler {

// Throws errors::InvalidArgument, which names `path`, for any other bytes.
Timeline read_perfetto(std::string_view bytes, const std::string& path);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_READ_PERFETTO_H_
