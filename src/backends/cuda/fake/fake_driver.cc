#include "backends/cuda/fake/fake_driver.h"

#include <cuda.h>
#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

// A context is its device and what became of it.
struct CUctx_st {
  int device = 0;
  CUresult lasting = CUDA_SUCCESS;
};
// What holds up a stream, and all that waits for it.
struct Hold {
  bool held = true;
};
using Holds = std::vector<std::shared_ptr<Hold>>;
// A command that waits in a graph: what it is, and what does it.
struct Command {
  const void* kind = nullptr;  // of those of one kind, one replaces the other
  std::function<CUresult()> run;
};
struct CUgraph_st {
  CUcontext context = nullptr;
  std::vector<Command> commands;
};
struct CUgraphExec_st {
  CUcontext context = nullptr;
  std::vector<Command> commands;
};
struct CUstream_st {
  CUcontext context = nullptr;
  std::unique_ptr<CUgraph_st> captured;  // null: it does not capture
  bool broken = false;                   // what it captures
  Holds holds;
};
struct CUevent_st {
  CUcontext context = nullptr;
  long left = 0;  // queries until it has passed
  Holds holds;    // of its stream when it was recorded
  double at_ms = 0;
};
struct CUmod_st {
  CUcontext context = nullptr;
  std::string image;
};
struct CUfunc_st {
  CUcontext context = nullptr;
};

namespace {

constexpr int kMostDevices = 8;

struct Failure {
  std::string name;
  long at = 0;
  CUresult error = CUDA_SUCCESS;
};

struct Allocation {
  size_t bytes = 0;
  int device = 0;
  char* own = nullptr;  // the bytes as they may be touched
  void* begin = nullptr;
  size_t mapped = 0;
};

struct State {
  std::recursive_mutex mutex;
  int devices = 1, version = 13000, capability = 90;
  long later = 0;
  size_t memory = size_t{1} << 30;
  std::vector<Failure> failures;
  std::map<std::string, long> calls;
  long failed = 0;
  bool started = false;
  CUctx_st contexts[kMostDevices];
  std::map<CUdeviceptr, Allocation> allocations;
  size_t used[kMostDevices] = {};
  std::set<const void*> host, objects;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
  double clock_ms = 0;

  State() {
    const char* description = std::getenv("BERTH_FAKE_CUDA");
    read(description == nullptr ? "" : description);
  }
  void read(const std::string& description);
};

State& state() {
  static State& s = *new State;  // threads may call while the process ends
  return s;
}

thread_local CUcontext current = nullptr;
// The stream of which this thread began a capture, of its own calls alone
// (CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).
thread_local CUstream capturing = nullptr;

// Words between separators.
std::vector<std::string> cut(const std::string& text, char separator) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

size_t bytes_of(const std::string& text) {
  char* unit = nullptr;
  const size_t n = std::strtoull(text.c_str(), &unit, 10);
  return *unit == 'G' ? n << 30 : *unit == 'M' ? n << 20 : n;
}

[[noreturn]] void not_understood(const std::string& word) {
  std::fprintf(stderr, "BERTH_FAKE_CUDA: '%s' is not understood\n",
               word.c_str());
  std::abort();
}

// NAME@N:CODE
Failure failure_of(const std::string& value) {
  const size_t at = value.find('@'), colon = value.find(':');
  if (at == std::string::npos || colon == std::string::npos) {
    not_understood(value);
  }
  return {value.substr(0, at), std::atol(value.c_str() + at + 1),
          static_cast<CUresult>(std::atoi(value.c_str() + colon + 1))};
}

void State::read(const std::string& description) {
  devices = 1, version = 13000, capability = 90, later = 0;
  memory = size_t{1} << 30;
  failures.clear();
  for (const std::string& word : cut(description, ',')) {
    const size_t is = word.find('=');
    if (is == std::string::npos) not_understood(word);
    const std::string name = word.substr(0, is), value = word.substr(is + 1);
    if (name == "devices") {
      devices = std::min(std::atoi(value.c_str()), kMostDevices);
    } else if (name == "driver") {
      version = std::atoi(value.c_str());
    } else if (name == "memory") {
      memory = bytes_of(value);
    } else if (name == "capability") {
      capability = std::atoi(value.c_str());
    } else if (name == "later") {
      later = std::atol(value.c_str());
    } else if (name == "fail") {
      failures.push_back(failure_of(value));
    } else {
      not_understood(word);
    }
  }
}

bool is_lasting(CUresult error) { return error >= 700 && error < 721; }

// One call: what it is to fail with, and the lock while it lasts.
class Call {
 public:
  // `of`: the context that must be current; `any`: none need be.
  explicit Call(const char* name, bool any = false)
      : s(state()), lock_(s.mutex) {
    const long n = ++s.calls[name];
    for (const Failure& f : s.failures) {
      if (f.name != name || f.at != n) continue;
      ++s.failed;
      error = f.error;
      if (is_lasting(error) && current != nullptr) current->lasting = error;
      return;
    }
    if (any) return;
    if (!s.started) {
      error = CUDA_ERROR_NOT_INITIALIZED;
    } else if (current == nullptr) {
      error = CUDA_ERROR_INVALID_CONTEXT;
    } else {
      error = current->lasting;
    }
  }

  bool fails() const { return error != CUDA_SUCCESS; }
  // The object is one that lives, of the current context.
  template <class T>
  bool wrong(const T* object) {
    if (s.objects.contains(object) && object->context == current) return false;
    error = CUDA_ERROR_INVALID_HANDLE;
    return true;
  }
  // Calls that wait, or that may, are refused to a thread that captures; what
  // it captures is lost.
  bool refused() {
    if (fails() || capturing == nullptr) return fails();
    capturing->broken = true;
    error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return true;
  }
  // Where a device's bytes can be touched; null: they are not all its own.
  static char* touch(CUdeviceptr data, size_t bytes, int device) {
    const auto& all = state().allocations;
    auto it = all.upper_bound(data);
    if (it == all.begin()) return nullptr;
    --it;
    const Allocation& a = it->second;
    if (a.device != device || data + bytes > it->first + a.bytes) {
      return nullptr;
    }
    return a.own + (data - it->first);
  }

  CUresult error = CUDA_SUCCESS;
  State& s;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// Does what `run` does, or keeps it where the stream captures.
CUresult append(CUstream stream, const void* kind,
                std::function<CUresult()> run) {
  if (!stream->captured) return run();
  if (stream != capturing) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  stream->captured->commands.push_back({kind, std::move(run)});
  return CUDA_SUCCESS;
}

// Copies between two places of memory that may not be the caller's.
template <class To, class From>
CUresult copy_bytes(To&& to, From&& from, size_t bytes) {
  void* target = to();
  const void* source = from();
  if (target == nullptr || source == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memmove(target, source, bytes);
  return CUDA_SUCCESS;
}

// Reserves addresses that nobody may touch, and the same bytes elsewhere.
Allocation map_bytes(size_t bytes, int device) {
  Allocation a;
  a.bytes = bytes;
  a.device = device;
  a.mapped = bytes + (size_t{2} << 20);
  a.begin = mmap(nullptr, a.mapped, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* own = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (a.begin == MAP_FAILED || own == MAP_FAILED) std::abort();
  a.own = static_cast<char*>(own);
  return a;
}

void free_bytes(State& s, const Allocation& a) {
  s.used[a.device] -= a.bytes;
  munmap(a.begin, a.mapped);
  munmap(a.own, a.bytes);
}

template <class T>
T* made(State& s) {
  auto* object = new T;
  object->context = current;
  s.objects.insert(object);
  return object;
}

template <class T>
CUresult destroy(Call& c, T* object) {
  if (c.fails() || c.wrong(object)) return c.error;
  c.s.objects.erase(object);
  delete object;
  return CUDA_SUCCESS;
}

// The file in memory is as long as its header says.
size_t elf_bytes(const void* image) {
  const auto* head = static_cast<const Elf64_Ehdr*>(image);
  if (std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return 0;
  const size_t sections =
      head->e_shoff + size_t{head->e_shnum} * head->e_shentsize;
  const size_t parts =
      head->e_phoff + size_t{head->e_phnum} * head->e_phentsize;
  return std::max(sections, parts);
}

void fake_begin(const char* description) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.read(description);
  s.calls.clear();
  s.failed = 0;
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

bool is_held(const Holds& holds) {
  return std::any_of(holds.begin(), holds.end(),
                     [](const auto& h) { return h->held; });
}

// Waits until it is no more; every call of another thread goes on.
void await_holds(const Holds& holds) {
  for (;;) {
    {
      const std::lock_guard lock(state().mutex);
      if (!is_held(holds)) return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
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

void* fake_touch_on(void* data, size_t bytes, int device) {
  const Call c("a library", true);
  return c.touch(reinterpret_cast<CUdeviceptr>(data), bytes, device);
}

int fake_current() { return current == nullptr ? -1 : current->device; }

long fake_objects() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return static_cast<long>(s.objects.size() + s.host.size());
}

char* fake_touch(uint64_t address, size_t bytes) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto it = s.allocations.upper_bound(address);
  if (it == s.allocations.begin()) return nullptr;
  --it;
  if (address + bytes > it->first + it->second.bytes) return nullptr;
  return it->second.own + (address - it->first);
}

void fake_pass_time(double ms) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.clock_ms += ms;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

extern "C" __attribute__((visibility("default")))
const berth::cuda::FakeDriver berth_fake_driver = {
    fake_begin,   fake_calls,      fake_failed,  fake_hold,  fake_touch_on,
    fake_current, fake_bytes_used, fake_objects, fake_touch, fake_pass_time};

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
  if (bytes > c.s.memory - used) return CUDA_ERROR_OUT_OF_MEMORY;
  const Allocation a = map_bytes(bytes, current->device);
  const auto begin = reinterpret_cast<CUdeviceptr>(a.begin);
  // Small ones lie anywhere, others at multiples of 2 MiB, as NVIDIA's do.
  const size_t large = size_t{2} << 20;
  *data = bytes < large ? begin + 512 : (begin + large - 1) / large * large;
  c.s.allocations[*data] = a;
  used += bytes;
  return CUDA_SUCCESS;
}

FAKE cuMemFree(CUdeviceptr data) {
  Call c("cuMemFree");
  if (c.refused()) return c.error;
  const auto it = c.s.allocations.find(data);
  if (it == c.s.allocations.end() || it->second.device != current->device) {
    return CUDA_ERROR_INVALID_VALUE;
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

FAKE cuStreamCreate(CUstream* stream, unsigned) {
  Call c("cuStreamCreate");
  if (!c.fails()) *stream = made<CUstream_st>(c.s);
  return c.error;
}

FAKE cuStreamDestroy(CUstream stream) {
  Call c("cuStreamDestroy");
  if (capturing == stream) capturing = nullptr;
  return destroy(c, stream);
}

FAKE cuStreamSynchronize(CUstream stream) {
  Holds holds;
  {
    Call c("cuStreamSynchronize");
    if (c.refused() || c.wrong(stream)) return c.error;
    holds = stream->holds;
  }
  await_holds(holds);
  return CUDA_SUCCESS;
}

FAKE cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  Call c("cuStreamWaitEvent");
  if (c.fails() || c.wrong(stream)) return c.error;
  // Another context's will do.
  if (!c.s.objects.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& h : event->holds) {
    if (h->held) stream->holds.push_back(h);
  }
  return CUDA_SUCCESS;
}

FAKE cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  Call c("cuStreamBeginCapture");
  if (c.fails() || c.wrong(stream)) return c.error;
  if (stream->captured || capturing != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    return CUDA_ERROR_INVALID_VALUE;  // of the others nothing is known here
  }
  stream->captured = std::make_unique<CUgraph_st>();
  stream->captured->context = current;
  stream->broken = false;
  capturing = stream;
  return CUDA_SUCCESS;
}

FAKE cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  Call c("cuStreamEndCapture");
  *graph = nullptr;
  if (c.error == CUDA_ERROR_INVALID_CONTEXT || c.wrong(stream)) return c.error;
  if (!stream->captured) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream != capturing) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  // It ends, whatever comes of it.
  capturing = nullptr;
  std::unique_ptr<CUgraph_st> captured = std::move(stream->captured);
  if (c.fails()) return c.error;
  if (stream->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = captured.release();
  c.s.objects.insert(*graph);
  return CUDA_SUCCESS;
}

FAKE cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  Call c("cuGraphInstantiate");
  if (c.refused() || c.wrong(graph)) return c.error;
  *exec = made<CUgraphExec_st>(c.s);
  (*exec)->commands = graph->commands;
  return CUDA_SUCCESS;
}

FAKE cuGraphExecUpdate(CUgraphExec exec, CUgraph graph,
                       CUgraphExecUpdateResultInfo* info) {
  Call c("cuGraphExecUpdate");
  if (c.refused() || c.wrong(exec) || c.wrong(graph)) return c.error;
  const bool same = std::equal(
      exec->commands.begin(), exec->commands.end(), graph->commands.begin(),
      graph->commands.end(),
      [](const Command& a, const Command& b) { return a.kind == b.kind; });
  info->result = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                      : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (!same) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  exec->commands = graph->commands;
  return CUDA_SUCCESS;
}

FAKE cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  Call c("cuGraphLaunch");
  if (c.fails() || c.wrong(exec) || c.wrong(stream)) return c.error;
  if (stream->captured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (const Command& command : exec->commands) {
    // What was right when it was captured is not any more.
    if (command.run() != CUDA_SUCCESS) {
      return current->lasting = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  }
  return CUDA_SUCCESS;
}

FAKE cuGraphExecDestroy(CUgraphExec exec) {
  Call c("cuGraphExecDestroy");
  return destroy(c, exec);
}

FAKE cuGraphDestroy(CUgraph graph) {
  Call c("cuGraphDestroy");
  return destroy(c, graph);
}

FAKE cuEventCreate(CUevent* event, unsigned) {
  Call c("cuEventCreate");
  if (!c.fails()) *event = made<CUevent_st>(c.s);
  return c.error;
}

FAKE cuEventDestroy(CUevent event) {
  Call c("cuEventDestroy");
  return destroy(c, event);
}

FAKE cuEventRecord(CUevent event, CUstream stream) {
  Call c("cuEventRecord");
  if (c.fails() || c.wrong(stream) || c.wrong(event)) return c.error;
  if (stream->captured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  event->left = c.s.later;
  event->holds = stream->holds;
  event->at_ms = c.s.clock_ms += 0.5;
  return CUDA_SUCCESS;
}

FAKE cuEventQuery(CUevent event) {
  Call c("cuEventQuery");
  if (c.refused() || c.wrong(event)) return c.error;
  if (is_held(event->holds)) return CUDA_ERROR_NOT_READY;
  return event->left-- > 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

FAKE cuEventSynchronize(CUevent event) {
  Holds holds;
  {
    Call c("cuEventSynchronize");
    if (c.refused() || c.wrong(event)) return c.error;
    event->left = 0;
    holds = event->holds;
  }
  await_holds(holds);
  return CUDA_SUCCESS;
}

FAKE cuEventElapsedTime(float* ms, CUevent begin, CUevent end) {
  Call c("cuEventElapsedTime");
  if (c.fails() || c.wrong(begin) || c.wrong(end)) return c.error;
  *ms = static_cast<float>(end->at_ms - begin->at_ms);
  return CUDA_SUCCESS;
}

FAKE cuModuleLoadData(CUmodule* module, const void* image) {
  Call c("cuModuleLoadData");
  if (c.refused()) return c.error;
  const size_t bytes = elf_bytes(image);
  if (bytes == 0) return CUDA_ERROR_INVALID_IMAGE;
  *module = made<CUmod_st>(c.s);
  (*module)->image.assign(static_cast<const char*>(image), bytes);
  return CUDA_SUCCESS;
}

FAKE cuModuleUnload(CUmodule module) {
  Call c("cuModuleUnload");
  if (c.refused()) return c.error;
  return destroy(c, module);
}

FAKE cuModuleGetFunction(CUfunction* function, CUmodule module,
                         const char* name) {
  Call c("cuModuleGetFunction");
  if (c.fails() || c.wrong(module)) return c.error;
  // The section of its code.
  const std::string section = std::string(".text.") + name + '\0';
  if (module->image.find(section) == std::string::npos) {
    return CUDA_ERROR_NOT_FOUND;
  }
  c.s.functions.push_back(std::make_unique<CUfunc_st>());
  *function = c.s.functions.back().get();
  (*function)->context = current;
  return CUDA_SUCCESS;
}

FAKE cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z,
                    unsigned items, unsigned, unsigned, unsigned,
                    CUstream stream, void**, void**) {
  Call c("cuLaunchKernel");
  if (c.fails() || c.wrong(stream)) return c.error;
  if (function->context != current) return CUDA_ERROR_INVALID_HANDLE;
  if (x == 0 || x > 0x7fffffff || y == 0 || y > 65535 || z == 0 || z > 65535 ||
      items == 0 || items > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return append(stream, function, [] { return CUDA_SUCCESS; });
}

// NVRTC asks for a table of what no header declares, whose first number is its
// length in bytes: one too short for what it looks for.
FAKE cuGetExportTable(const void** table, const CUuuid*) {
  static const size_t empty[] = {sizeof(size_t)};
  *table = empty;
  return CUDA_SUCCESS;
}
