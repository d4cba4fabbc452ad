// WorkTrace: what GPUs did and when, as a file for chrome://tracing, Perfetto
// and scripts.
//
// BERTH_GPU_TRACE=FILE turns it on for the process. Every op, copy and fill of
// a GPU is then an event of its device and stream, with its own time. During
// the run, the file ends with the last work seen to end. Measuring costs a few
// microseconds per launch. Thread-safe.

#ifndef BERTH_BACKENDS_GPU_WORK_TRACE_H_
#define BERTH_BACKENDS_GPU_WORK_TRACE_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "device/stream.h"

namespace berth::gpu {

// One event. Names of ops live as long as the process.
struct TracedWork {
  const char* what = "";            // op, or the reason of a copy
  std::string kernel;               // if the driver's library names it
  Site site = {};                   // the user's line of an op
  double begin_us = 0, end_us = 0;  // by the host's clock
  double bytes = 0;                 // read and written
  bool crosses_link = false;
};

// "compute", "copies in", "copies out": what a device uses the stream for.
const char* role_of(const Stream& stream);

class WorkTrace {
 public:
  // Returns the trace of this process; null: not requested. While another
  // process or plug-in writes to FILE, this one writes to FILE.2, and so on.
  // Throws errors::InvalidArgument when the file cannot be written.
  static WorkTrace* asked();

  explicit WorkTrace(const std::string& path);
  ~WorkTrace();
  WorkTrace(const WorkTrace&) = delete;
  WorkTrace& operator=(const WorkTrace&) = delete;

  // Adds an event of "GPU:0" and "compute", "copies in", "copies out"; `how`
  // says once where this device's times come from.
  void add(const std::string& device, const char* stream, const char* how,
           const TracedWork& work);
  // Writes what was added to the file.
  void flush();

 private:
  int number_of(const std::string& device, const char* how);

  std::mutex mutex_;
  std::FILE* file_ = nullptr;
  std::map<std::string, int> devices_;
  int since_flush_ = 0;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_WORK_TRACE_H_
