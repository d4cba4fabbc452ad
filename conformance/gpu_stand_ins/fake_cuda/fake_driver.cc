// Devices, contexts and memory.

#include "conformance/gpu_stand_ins/fake_cuda/fake_driver.h"

#include "conformance/gpu_stand_ins/fake_cuda/fake_state.h"

using namespace berth::cuda::fake;

namespace {

void fake_begin(const char* description) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.read(description);
  s.calls.clear();
  s.failed = s.freed_early = 0;
  for (std::string& r : s.recorded) r.clear();
  for (auto it = s.allocations.begin(); it != s.allocations.end();) {
    const Allocation& a = it->second;
    const bool lost = s.contexts[a.device].lasting != CUDA_SUCCESS;
    if (lost) free_bytes(s, a);
    it = lost ? s.allocations.erase(it) : std::next(it);
  }
  for (CUctx_st& c : s.contexts) c.lasting = CUDA_SUCCESS;
}

long fake_calls(const char* name) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.calls[name];
}

long fake_failed() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.failed;
}

size_t fake_bytes_used() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  size_t sum = 0;
  for (const size_t bytes : s.used) sum += bytes;
  return sum;
}

void fake_hold(void* stream, bool held) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!s.objects.contains(stream)) return;
  Holds& holds = static_cast<CUstream>(stream)->holds;
  if (held) {
    holds.push_back(std::make_shared<Hold>());
  } else {
    for (const auto& h : holds) h->held = false;
    holds.clear();
  }
}

int fake_current() { return current == nullptr ? -1 : current->device; }

long fake_objects() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return static_cast<long>(s.objects.size() + s.host.size());
}

char* fake_touch(uint64_t address, size_t bytes, int device) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return Call::touch(address, bytes, device);
}

long fake_freed_early() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.freed_early;
}

const char* fake_recorded(int device) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.recorded[device].c_str();
}

void fake_pass_time(double ms) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.clock_ms += ms;
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const berth::cuda::FakeDriver berth_fake_driver = {
    fake_begin,     fake_calls,       fake_failed,     fake_hold,
    fake_touch,     fake_current,     fake_bytes_used, fake_objects,
    fake_pass_time, fake_freed_early, fake_recorded};

FAKE cuInit(unsigned) {
  Call c("cuInit", true);
  if (c.fails()) return c.error;
  if (c.s.devices == 0) return CUDA_ERROR_NO_DEVICE;
  c.s.started = true;
  for (int i = 0; i < kMostDevices; ++i) c.s.contexts[i].device = i;
  return CUDA_SUCCESS;
}

FAKE cuDriverGetVersion(int* version) {
  Call c("cuDriverGetVersion", true);
  *version = c.s.version;
  return c.error;
}

FAKE cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
#define FAKE_NAME(x) \
  case x:            \
    *name = #x;      \
    return CUDA_SUCCESS;
    FAKE_NAME(CUDA_ERROR_INVALID_VALUE)
    FAKE_NAME(CUDA_ERROR_OUT_OF_MEMORY)
    FAKE_NAME(CUDA_ERROR_NOT_INITIALIZED)
    FAKE_NAME(CUDA_ERROR_INVALID_CONTEXT)
    FAKE_NAME(CUDA_ERROR_INVALID_HANDLE)
    FAKE_NAME(CUDA_ERROR_NOT_FOUND)
    FAKE_NAME(CUDA_ERROR_DEVICE_UNAVAILABLE)
    FAKE_NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
    FAKE_NAME(CUDA_ERROR_LAUNCH_FAILED)
    FAKE_NAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    FAKE_NAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    default:
      *name = nullptr;
      return CUDA_ERROR_INVALID_VALUE;
  }
}

FAKE cuDeviceGetCount(int* count) {
  Call c("cuDeviceGetCount", true);
  *count = c.s.devices;
  return c.error;
}

FAKE cuDeviceGet(CUdevice* device, int number) {
  Call c("cuDeviceGet", true);
  if (number >= c.s.devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = number;
  return c.error;
}

FAKE cuDeviceGetName(char* name, int bytes, CUdevice device) {
  Call c("cuDeviceGetName", true);
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU %d", device);
  return c.error;
}

FAKE cuDeviceGetPCIBusId(char* name, int bytes, CUdevice device) {
  Call c("cuDeviceGetPCIBusId", true);
  std::snprintf(name, static_cast<size_t>(bytes), "0000:%02X:00.0", device);
  return c.error;
}

FAKE cuDeviceTotalMem(size_t* bytes, CUdevice) {
  Call c("cuDeviceTotalMem", true);
  *bytes = c.s.memory;
  return c.error;
}

FAKE cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
  Call c("cuDeviceGetAttribute", true);
  switch (what) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = c.s.capability / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = c.s.capability % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 49152;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      *value = c.s.mode;
      break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
      *value = c.s.integrated;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return c.error;
}

FAKE cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  Call c("cuDevicePrimaryCtxRetain", true);
  *context = &c.s.contexts[device];
  return c.error;
}

FAKE cuDeviceCanAccessPeer(int* can, CUdevice a, CUdevice b) {
  Call c("cuDeviceCanAccessPeer", true);
  *can = a != b;
  return c.error;
}

FAKE cuCtxGetCurrent(CUcontext* context) {
  Call c("cuCtxGetCurrent", true);
  *context = current;
  return c.error;
}

FAKE cuCtxSetCurrent(CUcontext context) {
  Call c("cuCtxSetCurrent", true);
  if (!c.fails()) current = context;
  return c.error;
}

FAKE cuCtxEnablePeerAccess(CUcontext other, unsigned) {
  Call c("cuCtxEnablePeerAccess");
  if (c.refused()) return c.error;
  if (other == current) return CUDA_ERROR_INVALID_CONTEXT;
  return c.error;
}

FAKE cuMemAlloc(CUdeviceptr* data, size_t bytes) {
  Call c("cuMemAlloc");
  if (c.refused()) return c.error;
  size_t& used = c.s.used[current->device];
  if (bytes + c.s.others > c.s.memory - used) return CUDA_ERROR_OUT_OF_MEMORY;
  const Allocation a = map_bytes(bytes, current->device);
  const auto begin = reinterpret_cast<CUdeviceptr>(a.begin);
  // Small ones lie anywhere, others at multiples of 2 MiB, as NVIDIA's do.
  const size_t large = size_t{2} << 20;
  *data = bytes < large ? begin + 512 : (begin + large - 1) / large * large;
  c.s.allocations[*data] = a;
  used += bytes;
  return CUDA_SUCCESS;
}

FAKE cuMemGetInfo(size_t* free, size_t* total) {
  Call c("cuMemGetInfo");
  if (c.fails()) return c.error;
  *total = c.s.memory;
  *free =
      c.s.memory - std::min(c.s.memory, c.s.used[current->device] + c.s.others);
  return CUDA_SUCCESS;
}

FAKE cuMemFree(CUdeviceptr data) {
  Call c("cuMemFree");
  if (c.refused()) return c.error;
  const auto it = c.s.allocations.find(data);
  if (it == c.s.allocations.end() || it->second.device != current->device) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const CUstream stream : c.s.streams) {
    c.s.freed_early += stream->context == current && is_held(stream->holds);
  }
  free_bytes(c.s, it->second);
  c.s.allocations.erase(it);
  return CUDA_SUCCESS;
}

FAKE cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  Call c("cuMemHostAlloc");
  if (c.refused()) return c.error;
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  c.s.host.insert(*data);
  return CUDA_SUCCESS;
}

FAKE cuMemFreeHost(void* data) {
  Call c("cuMemFreeHost");
  if (c.refused()) return c.error;
  if (c.s.host.erase(data) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::free(data);
  return CUDA_SUCCESS;
}

FAKE cuMemcpyHtoDAsync(CUdeviceptr target, const void* source, size_t bytes,
                       CUstream stream) {
  Call c("cuMemcpyHtoDAsync");
  if (c.fails() || c.wrong(stream)) return c.error;
  static const char kind = 0;
  return append(stream, &kind, [=, device = current->device] {
    return copy_bytes([=] { return Call::touch(target, bytes, device); },
                      [=] { return source; }, bytes);
  });
}

FAKE cuMemcpyDtoHAsync(void* target, CUdeviceptr source, size_t bytes,
                       CUstream stream) {
  Call c("cuMemcpyDtoHAsync");
  if (c.fails() || c.wrong(stream)) return c.error;
  static const char kind = 0;
  return append(stream, &kind, [=, device = current->device] {
    return copy_bytes([=] { return target; },
                      [=] { return Call::touch(source, bytes, device); },
                      bytes);
  });
}

FAKE cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes,
                       CUstream stream) {
  Call c("cuMemcpyDtoDAsync");
  if (c.fails() || c.wrong(stream)) return c.error;
  static const char kind = 0;
  return append(stream, &kind, [=, device = current->device] {
    return copy_bytes([=] { return Call::touch(target, bytes, device); },
                      [=] { return Call::touch(source, bytes, device); },
                      bytes);
  });
}

FAKE cuMemcpyPeerAsync(CUdeviceptr target, CUcontext to_context,
                       CUdeviceptr source, CUcontext from_context, size_t bytes,
                       CUstream stream) {
  Call c("cuMemcpyPeerAsync");
  if (c.fails() || c.wrong(stream)) return c.error;
  static const char kind = 0;
  return append(stream, &kind, [=] {
    return copy_bytes(
        [=] { return Call::touch(target, bytes, to_context->device); },
        [=] { return Call::touch(source, bytes, from_context->device); },
        bytes);
  });
}

FAKE cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes,
                     CUstream stream) {
  Call c("cuMemsetD8Async");
  if (c.fails() || c.wrong(stream)) return c.error;
  static const char kind = 0;
  return append(stream, &kind, [=, device = current->device] {
    char* to = Call::touch(target, bytes, device);
    if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memset(to, value, bytes);
    return CUDA_SUCCESS;
  });
}

FAKE cuMemsetD32Async(CUdeviceptr target, unsigned value, size_t count,
                      CUstream stream) {
  Call c("cuMemsetD32Async");
  if (c.fails() || c.wrong(stream)) return c.error;
  static const char kind = 0;
  return append(stream, &kind, [=, device = current->device] {
    char* to = Call::touch(target, count * sizeof(value), device);
    if (to == nullptr || target % sizeof(value) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(to + i * sizeof(value), &value, sizeof(value));
    }
    return CUDA_SUCCESS;
  });
}

// NVRTC asks for an undocumented table whose first number is its length in
// bytes. This one is too short to hold what it looks for.
FAKE cuGetExportTable(const void** table, const CUuuid*) {
  static const size_t empty[] = {sizeof(size_t)};
  *table = empty;
  return CUDA_SUCCESS;
}
