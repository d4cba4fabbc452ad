// The page that `berth report` makes of a memory snapshot
// (device/memory_snapshot.h): a picture of the blocks, and who holds most.
// Pure.

#ifndef BERTH_PROFILER_SNAPSHOT_PAGE_H_
#define BERTH_PROFILER_SNAPSHOT_PAGE_H_

#include <string>

namespace berth::profiler {

// Whether a file begins as snapshots do.
bool is_memory_snapshot(const std::string& path);

// Returns an HTML file without scripts. Throws errors::InvalidArgument for
// other texts.
std::string snapshot_page(const std::string& json, const std::string& title);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_SNAPSHOT_PAGE_H_
