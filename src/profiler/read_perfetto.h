// read_perfetto: the events of a text that Timeline::perfetto() returned.
// Thread-safe.

#ifndef BERTH_PROFILER_READ_PERFETTO_H_
#define BERTH_PROFILER_READ_PERFETTO_H_

#include <string>
#include <string_view>

#include "profiler/tasks.h"

namespace berth::profiler {

// Throws errors::InvalidArgument, which names `path`, for any other bytes.
TaskEvents read_perfetto(std::string_view bytes, const std::string& path);
// Reads a file that Timeline::write() wrote.
TaskEvents read_events(const std::string& path);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_READ_PERFETTO_H_
