// A fake libnvidia-ml.so.1: BERTH_FAKE_NVML has the free MiB of each GPU, as
// "16,1024"; without it nothing is known.

#include <cstdlib>

#define FAKE extern "C" __attribute__((visibility("default"))) int

namespace {

struct Memory {
  unsigned long long total, free, used;
};

bool started = false;

}  // namespace

FAKE nvmlInit_v2() {
  started = true;
  return 0;
}

FAKE nvmlDeviceGetHandleByPciBusId_v2(const char* bus, const void** device) {
  const char* free = std::getenv("BERTH_FAKE_NVML");
  if (!started || free == nullptr) return 1;
  char* rest = nullptr;
  for (long n = std::strtol(bus + 5, &rest, 16); n > 0; --n) {
    while (*free != '\0' && *free++ != ',') {
    }
  }
  *device = free;
  return *free == '\0' ? 6 : 0;
}

FAKE nvmlDeviceGetMemoryInfo(const void* device, Memory* memory) {
  memory->free = std::strtoull(static_cast<const char*>(device), nullptr, 10)
                 << 20;
  return 0;
}
