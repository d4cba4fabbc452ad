// A libcuda.so.1 that says yes to everything and does nothing, so that cuDNN
// makes plans; nothing runs on it. driver_names.py adds the functions that
// none here has.

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#define DRIVER extern "C" __attribute__((visibility("default"))) int

namespace {

constexpr int kNotFound = 500;  // CUDA_ERROR_NOT_FOUND

char anything[64];  // what handles point to

int give(void** handle) {
  *handle = anything;
  return 0;
}

int nothing() { return 0; }

// The function of that name, the second version first.
int find(const char* name, void** function) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&nothing), &info) == 0) return kNotFound;
  void* self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = dlsym(self, (std::string(name) + "_v2").c_str());
  if (*function == nullptr) *function = dlsym(self, name);
  return *function == nullptr ? kNotFound : 0;
}

// CUdevice_attribute, of a large card.
int attribute(int what) {
  switch (what) {
    case 1:  // threads of a block, and along its axes
    case 2:
    case 3:
      return 1024;
    case 4:
      return 64;
    case 5:  // blocks along the axes of a grid
      return 2147483647;
    case 6:
    case 7:
      return 65535;
    case 8:  // shared memory of a block
      return 49152;
    case 10:
      return 32;  // threads of a warp
    case 12:      // registers of a block and of a processor
    case 82:
      return 65536;
    case 16:
      return 132;  // processors
    case 39:
      return 2048;  // threads of one
    case 75:
      return 9;  // compute capability
    case 76:
      return 0;
    case 81:
      return 233472;  // shared memory of a processor
    case 97:
      return 232448;  // of a block that asks for it
    case 106:
      return 32;  // blocks of a processor
    case 111:
      return 1024;  // shared memory that is the driver's
    default:
      return 1;
  }
}

}  // namespace

#include "driver_names.inc"

DRIVER cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
DRIVER cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
DRIVER cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}
DRIVER cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "stand-in");
  return 0;
}
DRIVER cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{140} << 30;
  return 0;
}
DRIVER cuDeviceGetAttribute(int* value, int what, int) {
  *value = attribute(what);
  return 0;
}
DRIVER cuCtxGetCurrent(void** context) { return give(context); }
DRIVER cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
DRIVER cuCtxGetApiVersion(void*, unsigned* version) {
  *version = 13000;
  return 0;
}
DRIVER cuCtxGetId(void*, unsigned long long* id) {
  *id = 1;
  return 0;
}
DRIVER cuDevicePrimaryCtxRetain(void** context, int) { return give(context); }
DRIVER cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return 0;
}
DRIVER cuGetErrorName(int, const char** name) {
  *name = "error";
  return 0;
}
DRIVER cuGetErrorString(int, const char** text) {
  *text = "error";
  return 0;
}
DRIVER cuStreamIsCapturing(void*, int* status) {
  *status = 0;
  return 0;
}
DRIVER cuLibraryLoadData(void** library) { return give(library); }
DRIVER cuLibraryGetKernel(void** kernel) { return give(kernel); }
DRIVER cuLibraryGetModule(void** module) { return give(module); }
DRIVER cuKernelGetFunction(void** function) { return give(function); }
DRIVER cuModuleLoadData(void** module) { return give(module); }
DRIVER cuModuleLoadDataEx(void** module) { return give(module); }
DRIVER cuModuleGetFunction(void** function) { return give(function); }

// Tables that no header declares; the first number is their length in bytes.
// NVRTC looks for its own compiler in two: those are too short to have it.
DRIVER cuGetExportTable(const void** table, const void* id) {
  static const unsigned char compilers[][4] = {{0xda, 0x91, 0x51, 0xd3},
                                               {0x17, 0x34, 0xdc, 0x26}};
  static const size_t empty[] = {sizeof(size_t)};
  for (const auto& c : compilers) {
    if (std::memcmp(id, c, sizeof c) != 0) continue;
    *table = empty;
    return 0;
  }
  static size_t full[64] = {};
  full[0] = sizeof full;
  for (size_t i = 1; i < 64; ++i) {
    full[i] = reinterpret_cast<size_t>(&nothing);
  }
  *table = full;
  return 0;
}

DRIVER cuGetProcAddress(const char* name, void** function, int,
                        unsigned long long) {
  return find(name, function);
}
DRIVER cuGetProcAddress_v2(const char* name, void** function, int,
                           unsigned long long, int* status) {
  const int error = find(name, function);
  if (status != nullptr) *status = error == 0 ? 0 : 1;
  return error;
}
