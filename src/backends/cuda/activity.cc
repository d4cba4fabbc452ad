#include "backends/cuda/activity.h"

#include <fmt/format.h>

#include "backends/gpu/work_trace.h"
#include "base/immortal.h"

#ifdef BERTH_HAVE_CUPTI
#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/library_folders.h"
#include "base/clock.h"
#include "device/device.h"
#endif

namespace berth::cuda {

#ifdef BERTH_HAVE_CUPTI

namespace {

constexpr char kCupti[] = "libcupti.so.13";
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr uint32_t kFlushEveryMs = 200;
constexpr size_t kNoted = size_t{1} << 16;  // works known by number
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

#define BERTH_CUPTI_CALLS(X)                \
  X(cuptiActivityRegisterCallbacks)         \
  X(cuptiActivityEnable)                    \
  X(cuptiActivityFlushAll)                  \
  X(cuptiActivityFlushPeriod)               \
  X(cuptiActivityGetNextRecord)             \
  X(cuptiActivityPushExternalCorrelationId) \
  X(cuptiActivityPopExternalCorrelationId)  \
  X(cuptiGetTimestamp)

struct CuptiCalls {
#define BERTH_CUPTI_MEMBER(call) decltype(&::call) call = nullptr;
  BERTH_CUPTI_CALLS(BERTH_CUPTI_MEMBER)
#undef BERTH_CUPTI_MEMBER
};

const char* fill_cupti(void* library, CuptiCalls* calls) {
#define BERTH_CUPTI_FIND(call)                                              \
  calls->call = reinterpret_cast<decltype(&::call)>(dlsym(library, #call)); \
  if (calls->call == nullptr) return #call;
  BERTH_CUPTI_CALLS(BERTH_CUPTI_FIND)
#undef BERTH_CUPTI_FIND
  return nullptr;
}

// Opens the library's functions; returns why it cannot.
std::string open_cupti(CuptiCalls* calls) {
  std::vector<std::string> folders = library_folders();
  folders.push_back("/usr/local/cuda/extras/CUPTI/lib64");
  const auto fill = [=](void* library) { return fill_cupti(library, calls); };
  std::string tried;
  if (open_library(kCupti, folders, fill, &tried)) return "";
  return fmt::format("there is no {}; looked into: {}", kCupti, tried);
}

// The work that a launch or a copy belongs to.
struct Noted {
  uint64_t id = 0;
  std::string device;
  gpu::TracedWork work;
  const char* role = "";
};

// A kernel or a copy that ended.
struct Ran {
  uint64_t begin_ns = 0, end_ns = 0;
  double bytes = -1;  // -1: as many as the work's
  std::string kernel;
};

class CuptiActivity final : public Activity {
 public:
  explicit CuptiActivity(gpu::WorkTrace& trace)
      : trace_(trace), noted_(kNoted) {}

  // Returns why it cannot listen; "" when it does.
  std::string start();

  void enter(const Work& work, const Stream& of) override {
    uint64_t id = 0;
    {
      std::lock_guard lock(mutex_);
      id = ++last_;
      Noted& n = noted_[id % kNoted];
      n.id = id;
      n.device = of.device().short_name();
      n.role = gpu::role_of(of);
      n.work = {.what = work.what,
                .site = work.site,
                .bytes = work.moved_bytes,
                .crosses_link = work.crosses_link};
    }
    calls_.cuptiActivityPushExternalCorrelationId(kOurs, id);
  }

  void leave() noexcept override {
    uint64_t last = 0;
    calls_.cuptiActivityPopExternalCorrelationId(kOurs, &last);
  }

  void flush() noexcept override {
    calls_.cuptiActivityFlushAll(0);
    trace_.flush();
  }

 private:
  static constexpr CUpti_ExternalCorrelationKind kOurs =
      CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

  // CUPTI's callbacks pass no argument of ours.
  static inline CuptiActivity* g_started = nullptr;

  static void CUPTIAPI give_buffer(uint8_t** buffer, size_t* bytes,
                                   size_t* records) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
    *bytes = *buffer == nullptr ? 0 : kBufferBytes;
    *records = 0;
  }
  static void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t,
                                   size_t valid) {
    g_started->read(buffer, valid);
    std::free(buffer);
  }

  void read(uint8_t* buffer, size_t valid);
  void read(const CUpti_Activity& record);
  // Traces a kernel or copy of the work behind `correlation`, once both are
  // known.
  void ran(uint32_t correlation, Ran what);
  void belongs(uint32_t correlation, uint64_t id);
  void trace(uint64_t id, const Ran& what);

  gpu::WorkTrace& trace_;
  CuptiCalls calls_;
  double host_minus_ns_us_ = 0;  // host clock minus CUPTI's
  std::mutex mutex_;             // guards all below
  uint64_t last_ = 0;
  std::vector<Noted> noted_;                      // by number, the latest
  std::unordered_map<uint32_t, uint64_t> works_;  // by correlation
  std::unordered_map<uint32_t, std::vector<Ran>> waits_;  // await their work
};

std::string CuptiActivity::start() {
  std::string why = open_cupti(&calls_);
  if (!why.empty()) return why;
  g_started = this;
  if (calls_.cuptiActivityRegisterCallbacks(&give_buffer, &take_buffer) !=
      CUPTI_SUCCESS) {
    return fmt::format("{} refuses to start", kCupti);
  }
  for (const CUpti_ActivityKind kind : kKinds) {
    const CUptiResult error = calls_.cuptiActivityEnable(kind);
    if (error == CUPTI_SUCCESS) continue;
    return fmt::format("{}: cuptiActivityEnable({}): error {}", kCupti,
                       static_cast<int>(kind), static_cast<int>(error));
  }
  calls_.cuptiActivityFlushPeriod(kFlushEveryMs);  // if unknown, on waits
  uint64_t now_ns = 0;
  if (calls_.cuptiGetTimestamp(&now_ns) != CUPTI_SUCCESS) {
    return fmt::format("{} has no clock", kCupti);
  }
  host_minus_ns_us_ = host_clock_us() - static_cast<double>(now_ns) * 1e-3;
  return "";
}

void CuptiActivity::read(uint8_t* buffer, size_t valid) {
  std::lock_guard lock(mutex_);
  CUpti_Activity* record = nullptr;
  while (calls_.cuptiActivityGetNextRecord(buffer, valid, &record) ==
         CUPTI_SUCCESS) {
    read(*record);
  }
  // Only late records of works this old can no longer be named.
  if (works_.size() > kNoted) works_.clear();
  if (waits_.size() > kNoted) waits_.clear();
}

void CuptiActivity::read(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& r =
          reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(record);
      if (r.externalKind == kOurs) belongs(r.correlationId, r.externalId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& r = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
      ran(r.correlationId, {r.start, r.end, -1, r.name ? r.name : ""});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& r = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
      ran(r.correlationId,
          {r.start, r.end, static_cast<double>(r.bytes), "memcpy"});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& r =
          reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(record);
      ran(r.correlationId,
          {r.start, r.end, static_cast<double>(r.bytes), "memcpy to a peer"});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& r = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
      ran(r.correlationId,
          {r.start, r.end, static_cast<double>(r.bytes), "memset"});
      break;
    }
    default:
      break;
  }
}

void CuptiActivity::ran(uint32_t correlation, Ran what) {
  const auto it = works_.find(correlation);
  if (it != works_.end()) return trace(it->second, what);
  waits_[correlation].push_back(std::move(what));
}

void CuptiActivity::belongs(uint32_t correlation, uint64_t id) {
  works_[correlation] = id;
  const auto it = waits_.find(correlation);
  if (it == waits_.end()) return;
  for (const Ran& what : it->second) trace(id, what);
  waits_.erase(it);
}

void CuptiActivity::trace(uint64_t id, const Ran& what) {
  const Noted& n = noted_[id % kNoted];
  if (n.id != id) return;
  gpu::TracedWork w = n.work;
  w.kernel = what.kernel;
  w.begin_us = host_minus_ns_us_ + static_cast<double>(what.begin_ns) * 1e-3;
  w.end_us = host_minus_ns_us_ + static_cast<double>(what.end_ns) * 1e-3;
  if (what.bytes >= 0) w.bytes = what.bytes;
  trace_.add(n.device, n.role, "by CUPTI, of each kernel", w);
}

struct FoundActivity {
  Activity* activity = nullptr;
  std::string why;
  FoundActivity() {
    gpu::WorkTrace* trace = gpu::WorkTrace::asked();
    if (trace == nullptr) return;
    auto& made = immortal<CuptiActivity>(*trace);
    why = made.start();
    if (why.empty()) activity = &made;
    why = "of events around each op (" + why + ")";
  }
};

}  // namespace

Activity* Activity::asked(const char** why) {
  static const auto& found = immortal<FoundActivity>();
  if (gpu::WorkTrace::asked() != nullptr) *why = found.why.c_str();
  return found.activity;
}

#else

Activity* Activity::asked(const char** why) {
  if (gpu::WorkTrace::asked() != nullptr) {
    *why = "of events around each op (built without CUPTI's headers)";
  }
  return nullptr;
}

#endif

}  // namespace berth::cuda
