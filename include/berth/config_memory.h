// config: what is in the memory of devices, by tensor and line.
//
// Thread-safe.

#ifndef BERTH_CONFIG_MEMORY_H_
#define BERTH_CONFIG_MEMORY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "berth/site.h"

namespace berth::config {

// What holds memory: an op's results, a variable, what a plan computes.
struct MemoryHolder {
  std::string name;  // "MatMul", "variable 'dense/kernel'"
  Site site = {};    // the user's line; no file: unknown
  size_t bytes = 0;
  int blocks = 0;
};
// What is alive on a device, by name and line, the largest first; plans by what
// lives in their memory when most does. Waits as get_memory_info() does.
std::vector<MemoryHolder> get_memory_holders(const std::string& device,
                                             Site site = Site::here());
// Returns those of the peak, within 1 %, since reset_memory_stats(). While
// track_memory_peaks(true) holds; BERTH_LEAK_REPORT=1 begins it, too.
std::vector<MemoryHolder> get_peak_holders(const std::string& device,
                                           Site site = Site::here());
void track_memory_peaks(bool on);
// Both for every device that has memory in use, as text. BERTH_LEAK_REPORT=1
// prints it to stderr when the process ends.
std::string memory_report();

// Where a device that is full writes every block with its line, for `berth
// report`; "": where BERTH_MEMORY_SNAPSHOT says, else beside the file of
// BERTH_PROFILE, else nowhere. May change at any time.
void set_memory_snapshot(const std::string& path);
// Writes such a file now (docs/json.md). Throws errors::InvalidArgument if it
// cannot be written.
void write_memory_snapshot(const std::string& device, const std::string& path,
                           Site site = Site::here());

}  // namespace berth::config

#endif  // BERTH_CONFIG_MEMORY_H_
