// State of the fake driver, and what its functions share. The lock of a Call
// guards everything.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_STATE_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_STATE_H_

#include <cuda.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// A context: its device and its lasting error.
struct CUctx_st {
  int device = 0;
  CUresult lasting = CUDA_SUCCESS;
};
// A block on a stream and on everything that waits for it.
struct Hold {
  bool held = true;
};
using Holds = std::vector<std::shared_ptr<Hold>>;
// A command in a graph: its kind and its action.
struct Command {
  const void* kind = nullptr;  // one may replace another of its kind
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
  std::unique_ptr<CUgraph_st> captured;  // null: not capturing
  bool broken = false;                   // whether the capture is
  Holds holds;
};
struct CUevent_st {
  CUcontext context = nullptr;
  bool timed = true;
  long left = 0;  // queries until it has passed
  Holds holds;    // of its stream when recorded
  double at_ms = 0;
};
struct CUmod_st {
  CUcontext context = nullptr;
  std::string image;
};
struct CUfunc_st {
  CUcontext context = nullptr;
  bool loaded = false;  // its code, on the card
};

namespace berth::cuda::fake {

constexpr int kMostDevices = 8;

struct Failure {
  std::string name;
  long at = 0;
  CUresult error = CUDA_SUCCESS;
};

struct Allocation {
  size_t bytes = 0;
  int device = 0;
  char* own = nullptr;  // the same bytes, accessible
  void* begin = nullptr;
  size_t mapped = 0;
};

struct State {
  std::recursive_mutex mutex;
  int devices = 1, version = 13000, capability = 90;
  long later = 0, pause = 0;
  size_t memory = size_t{1} << 30, others = 0;
  int mode = CU_COMPUTEMODE_DEFAULT;
  bool integrated = false;
  std::vector<Failure> failures;
  std::map<std::string, long> calls;
  long failed = 0, freed_early = 0;
  bool started = false;
  CUctx_st contexts[kMostDevices];
  std::map<CUdeviceptr, Allocation> allocations;
  size_t used[kMostDevices] = {};
  std::set<const void*> host, objects;
  std::set<CUstream> streams;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
  double clock_ms = 0;
  std::string recorded[kMostDevices];  // initials of threads

  State() {
    const char* description = std::getenv("BERTH_FAKE_CUDA");
    read(description == nullptr ? "" : description);
  }
  void read(const std::string& description);
};

inline State& state() {
  static State& s = *new State;  // threads may call while the process ends
  return s;
}

inline thread_local CUcontext current = nullptr;
// The stream on which this thread began a capture of its own calls alone
// (CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).
inline thread_local CUstream capturing = nullptr;

// Words between separators.
inline std::vector<std::string> cut(const std::string& text, char separator) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

inline size_t bytes_of(const std::string& text) {
  char* unit = nullptr;
  const size_t n = std::strtoull(text.c_str(), &unit, 10);
  return *unit == 'G' ? n << 30 : *unit == 'M' ? n << 20 : n;
}

[[noreturn]] inline void not_understood(const std::string& word) {
  std::fprintf(stderr, "BERTH_FAKE_CUDA: '%s' is not understood\n",
               word.c_str());
  std::abort();
}

// NAME@N:CODE
inline Failure failure_of(const std::string& value) {
  const size_t at = value.find('@'), colon = value.find(':');
  if (at == std::string::npos || colon == std::string::npos) {
    not_understood(value);
  }
  return {value.substr(0, at), std::atol(value.c_str() + at + 1),
          static_cast<CUresult>(std::atoi(value.c_str() + colon + 1))};
}

inline void State::read(const std::string& description) {
  devices = 1, version = 13000, capability = 90, later = 0;
  memory = size_t{1} << 30, others = 0;
  mode = CU_COMPUTEMODE_DEFAULT, integrated = false, pause = 0;
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
    } else if (name == "pause") {
      pause = std::atol(value.c_str());
    } else if (name == "others") {
      others = bytes_of(value);
    } else if (name == "mode") {
      mode = std::atoi(value.c_str());
    } else if (name == "integrated") {
      integrated = value != "0";
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

inline bool is_lasting(CUresult error) {
  return (error >= 700 && error <= 721 && error != 720) || error == 806 ||
         error == 911 || error == 999;
}

// One call: the error with which it must fail, and the lock while it lasts.
class Call {
 public:
  // `any`: no context need be current.
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
  // Returns whether the object is alive and of the current context.
  template <class T>
  bool wrong(const T* object) {
    if (s.objects.contains(object) && object->context == current) return false;
    error = CUDA_ERROR_INVALID_HANDLE;
    return true;
  }
  // A capturing thread may not make calls that wait or may wait: they fail and
  // invalidate the capture.
  bool refused() {
    if (fails() || capturing == nullptr) return fails();
    capturing->broken = true;
    error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return true;
  }
  // Returns where the bytes of a device (-1: any) can be accessed; null unless
  // one of its allocations holds them all.
  static char* touch(CUdeviceptr data, size_t bytes, int device) {
    const auto& all = state().allocations;
    auto it = all.upper_bound(data);
    if (it == all.begin()) return nullptr;
    --it;
    const Allocation& a = it->second;
    if ((device >= 0 && a.device != device) ||
        data + bytes > it->first + a.bytes) {
      return nullptr;
    }
    return a.own + (data - it->first);
  }

  CUresult error = CUDA_SUCCESS;
  State& s;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// Calls `run`, or keeps it where the stream captures.
inline CUresult append(CUstream stream, const void* kind,
                       std::function<CUresult()> run) {
  if (!stream->captured) return run();
  if (stream != capturing) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  stream->captured->commands.push_back({kind, std::move(run)});
  return CUDA_SUCCESS;
}

// Copies between two addresses that may be invalid.
template <class To, class From>
CUresult copy_bytes(To&& to, From&& from, size_t bytes) {
  void* target = to();
  const void* source = from();
  if (target == nullptr || source == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memmove(target, source, bytes);
  return CUDA_SUCCESS;
}

// Reserves inaccessible addresses, and maps the same bytes elsewhere.
inline Allocation map_bytes(size_t bytes, int device) {
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

inline void free_bytes(State& s, const Allocation& a) {
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

inline bool is_held(const Holds& holds) {
  return std::any_of(holds.begin(), holds.end(),
                     [](const auto& h) { return h->held; });
}

// Waits for the holds to end; calls of other threads go on.
inline void await_holds(const Holds& holds) {
  for (;;) {
    {
      const std::lock_guard lock(state().mutex);
      if (!is_held(holds)) return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace berth::cuda::fake

// A function of the driver.
#define FAKE extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_STATE_H_
