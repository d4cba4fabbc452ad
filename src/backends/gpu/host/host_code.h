// HostCode: one kernel, compiled for the processor with sanitizers.
//
// The text is compiled with the C++ compiler that built Berth and kept as a
// shared library in a folder, named by the hash of what it was made of.
// Thread-safe.

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
  HostItem* item;          // what the kernel reads of its item
  const HostEntry* entry;  // stays loaded until the process ends
};

// How kernels are checked.
enum class HostCheck {
  kMemory,     // AddressSanitizer and UBSan
  kUndefined,  // UBSan; where the process has no AddressSanitizer
  kRaces,      // RaceWatch
};
// What BERTH_GPU_HOST_CHECK says: `memory` (the default) or `races`, as far as
// this process can. Throws errors::InvalidArgument for another word.
HostCheck host_check();

// The kernel `name` of a program. Throws errors::Internal with the compiler's
// words when there is none, or when it does not compile.
HostCode host_code(const std::string& text, const std::string& name,
                   HostCheck check);

// Where libraries are kept: $BERTH_GPU_HOST_CACHE, else in the build folder.
std::string host_code_folder();

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_HOST_HOST_CODE_H_
