// host_reads: how often this thread read a value of a device that has a memory
// of its own, for which it waits.

#ifndef BERTH_TENSOR_HOST_READS_H_
#define BERTH_TENSOR_HOST_READS_H_

#include <cstdint>

namespace berth {

class Device;

struct ReadsOfThread {
  int64_t count = 0;
  const Device* last = nullptr;
};
ReadsOfThread& host_reads();

}  // namespace berth

#endif  // BERTH_TENSOR_HOST_READS_H_
