// What a running program does now, for `berth top`: its devices, their queues
// and memory, calls so far, waits for input. With BERTH_TOP=1 a thread answers
// each connection to a socket in the user's runtime folder with one reading.
// Thread-safe.

#ifndef BERTH_PROFILER_LIVE_H_
#define BERTH_PROFILER_LIVE_H_

#include <nlohmann/json.hpp>
#include <string>

namespace berth::profiler {

// Where the sockets PID.sock are: $XDG_RUNTIME_DIR/berth, else
// /tmp/berth-UID. Throws errors::PermissionDenied if it exists and others may
// write there or own it; `create`: makes it.
std::string live_folder(bool create);

// Says what this process does now (docs/json.md).
nlohmann::ordered_json live_reading();

// Answers at PID.sock from now on, until the process ends.
void serve_live_readings();

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_LIVE_H_
