// A fake libcupti.so.13 for tests. Every work that is entered runs one kernel
// of half a microsecond, the n-th of the process n microseconds after the clock
// began. With BERTH_FAKE_CUPTI=refuse nothing can be enabled.

#include <cupti.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct State {
  std::mutex mutex;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::vector<std::vector<uint8_t>> records;
  uint32_t kernels = 0;
};

State& state() {
  static State& s = *new State;
  return s;
}

thread_local std::vector<uint64_t> t_entered;

template <class R>
std::vector<uint8_t> bytes_of(const R& record) {
  std::vector<uint8_t> bytes(sizeof record);
  std::memcpy(bytes.data(), &record, sizeof record);
  return bytes;
}

size_t size_of_kind(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION
             ? sizeof(CUpti_ActivityExternalCorrelation)
             : sizeof(CUpti_ActivityKernel10);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

CUptiResult cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc request,
    CUpti_BuffersCallbackCompleteFunc complete) {
  state().request = request;
  state().complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind) {
  const char* how = std::getenv("BERTH_FAKE_CUPTI");
  return how != nullptr && std::string(how) == "refuse"
             ? CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
             : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushPeriod(uint32_t) { return CUPTI_SUCCESS; }

CUptiResult cuptiGetTimestamp(uint64_t* now) {
  *now = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(
    CUpti_ExternalCorrelationKind, uint64_t id) {
  t_entered.push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(
    CUpti_ExternalCorrelationKind kind, uint64_t* last) {
  if (t_entered.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  *last = t_entered.back();
  t_entered.pop_back();
  State& s = state();
  std::lock_guard lock(s.mutex);
  CUpti_ActivityKernel10 kernel = {};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.correlationId = ++s.kernels;
  kernel.start = uint64_t{1000} * s.kernels;
  kernel.end = kernel.start + 500;
  kernel.name = "fake_kernel";
  CUpti_ActivityExternalCorrelation link = {};
  link.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  link.externalKind = kind;
  link.externalId = *last;
  link.correlationId = s.kernels;
  // Either may come first.
  const bool kernel_first = s.kernels % 2 == 0;
  s.records.push_back(kernel_first ? bytes_of(kernel) : bytes_of(link));
  s.records.push_back(kernel_first ? bytes_of(link) : bytes_of(kernel));
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
  State& s = state();
  std::vector<std::vector<uint8_t>> records;
  {
    std::lock_guard lock(s.mutex);
    records.swap(s.records);
  }
  size_t next = 0;
  while (next < records.size()) {
    uint8_t* buffer = nullptr;
    size_t bytes = 0, most = 0, used = 0;
    s.request(&buffer, &bytes, &most);
    for (; next < records.size() && used + records[next].size() <= bytes;
         ++next) {
      std::memcpy(buffer + used, records[next].data(), records[next].size());
      used += records[next].size();
    }
    s.complete(nullptr, 0, buffer, bytes, used);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                       CUpti_Activity** record) {
  uint8_t* next = buffer;
  if (*record != nullptr) {
    next = reinterpret_cast<uint8_t*>(*record) + size_of_kind((*record)->kind);
  }
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

#pragma GCC visibility pop
}
