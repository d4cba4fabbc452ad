// HostCode: one kernel, compiled for the processor with sanitizers.
//
// The C++ compiler that built Berth compiles the text. The shared library is
// kept in a folder, named by the hash of its inputs. Thread-safe.

#ifndef BERTH_BACKENDS_GPU_HOST_HOST_CODE_H_
#define BERTH_BACKENDS_GPU_HOST_HOST_CODE_H_

#include <cstdint>
#include <memory>
#include <string>

namespace berth::gpu {

// `HostItem` and `HostEntry` of host_words.h.
struct HostItem {
  int id;
  int items;
  long long group[3];
  long long groups;
  long long groups_y;
  unsigned long long serial;
  void (*barrier)(int place);
  void (*touch)(const void* p, unsigned bytes, int writes);
  void (*see_local)(const void* begin, unsigned bytes, const char* name);
};
struct HostEntry {
  int items;
  int num_args;
  const unsigned* arg_bytes;
  void (*call)(void* const* args);
};

struct HostCode {
  std::string name;        // of the kernel
  HostItem* item;          // what the kernel reads about its item
  const HostEntry* entry;  // loaded until the process ends
};

// How kernels are checked.
enum class HostCheck {
  kMemory,     // AddressSanitizer and UBSan
  kUndefined,  // UBSan; for processes without AddressSanitizer
  kRaces,      // RaceWatch
};
// Returns what BERTH_GPU_HOST_CHECK says: `memory` (the default) or `races`, if
// the process supports it. Throws errors::InvalidArgument for others.
HostCheck host_check();

// Returns the kernel `name` of a program. Throws errors::Internal with the
// compiler's message when it does not exist or compile.
HostCode host_code(const std::string& text, const std::string& name,
                   HostCheck check);

// Where libraries are kept: $BERTH_GPU_HOST_CACHE, else the build folder.
std::string host_code_folder();

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_HOST_HOST_CODE_H_
