#include "conformance/gpu_stand_ins/fake_cuda/fake_nccl.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/nccl_api.h"
#include "berth/half.h"
#include "conformance/gpu_stand_ins/fake_cuda/fake_driver.h"

using berth::cuda::FakeDriver;
using berth::cuda::NcclComm;
using berth::cuda::NcclConfig;
using berth::cuda::NcclId;
using berth::cuda::NcclResult;
using berth::cuda::NcclType;

namespace {

constexpr NcclResult kGood = berth::cuda::kNcclSuccess;
constexpr NcclResult kUsage = berth::cuda::kNcclInvalidUsage;
constexpr NcclResult kArgument = berth::cuda::kNcclInvalidArgument;
constexpr NcclResult kUnderWay = berth::cuda::kNcclInProgress;

struct Sum {
  char* data = nullptr;
  size_t count = 0;
  NcclType type = 0;
  void* stream = nullptr;
};

// The communicators of one id.
struct Clique {
  std::vector<NcclComm> ranks;  // null: not yet joined
};

struct State {
  std::recursive_mutex mutex;
  int version = 22809;
  long later = 0;
  std::string hang;
  std::string fails;  // name of the function
  long fails_at = 0, async_at = 0;
  NcclResult fails_with = 0, async = 0;
  std::map<std::string, long> calls;
  long sums = 0;
  uint64_t hangs_until = 1;  // true until begin() is called
  uint64_t next_id = 1;
  std::map<uint64_t, Clique> cliques;
  std::set<NcclComm> alive;
  std::vector<NcclComm> made;  // all ever made
  std::set<void*> held;        // streams
  std::string violations, shown;

  State() {
    const char* description = std::getenv("BERTH_FAKE_NCCL");
    read(description == nullptr ? "" : description);
  }
  void read(const std::string& description);
};

State& state() {
  static State& s = *new State;
  return s;
}

}  // namespace

struct berth::cuda::NcclCommunicator {
  uint64_t id = 0;
  int rank = 0, ranks = 0, device = -1;
  long under_way = 0;     // queries until it is done
  bool stuck = false;     // it never finishes
  NcclResult error = 0;   // asynchronous
  std::vector<Sum> sums;  // awaiting other ranks
  std::set<void*> streams;
  std::atomic<bool> used{false};
};

namespace {

const FakeDriver* driver() {
  static const auto* d = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library == nullptr ? nullptr
                              : static_cast<const FakeDriver*>(
                                    dlsym(library, "berth_fake_driver"));
  }();
  if (d == nullptr) {
    std::fprintf(stderr, "the fake NCCL needs the fake driver\n");
    std::abort();
  }
  return d;
}

[[noreturn]] void not_understood(const std::string& word) {
  std::fprintf(stderr, "BERTH_FAKE_NCCL: '%s' is not understood\n",
               word.c_str());
  std::abort();
}

void State::read(const std::string& description) {
  version = 22809, later = 0, hang.clear(), fails.clear();
  fails_at = async_at = 0;
  for (size_t begin = 0; begin < description.size();) {
    const size_t end =
        std::min(description.find(',', begin), description.size());
    const std::string word = description.substr(begin, end - begin);
    begin = end + 1;
    const size_t is = word.find('='), at = word.find('@'),
                 colon = word.find(':');
    if (is == std::string::npos) not_understood(word);
    const std::string name = word.substr(0, is), value = word.substr(is + 1);
    if (name == "version") {
      version = std::atoi(value.c_str());
    } else if (name == "later") {
      later = std::atol(value.c_str());
    } else if (name == "hang") {
      hang += value + " ";
    } else if (name == "fail" && at != word.npos && colon != word.npos) {
      fails = word.substr(is + 1, at - is - 1);
      fails_at = std::atol(word.c_str() + at + 1);
      fails_with = std::atoi(word.c_str() + colon + 1);
    } else if (name == "async" && colon != word.npos) {
      async_at = std::atol(value.c_str());
      async = std::atoi(word.c_str() + colon + 1);
    } else {
      not_understood(word);
    }
  }
}

bool hangs(const State& s, const char* what) {
  return s.hang.find(std::string(what) + " ") != std::string::npos;
}

NcclResult violation(State& s, const std::string& text,
                     NcclResult result = kUsage) {
  s.violations += text + "\n";
  return result;
}

// One call: its count, and whether it fails.
struct Call {
  explicit Call(const char* name) : s(state()), lock(s.mutex) {
    const long n = ++s.calls[name];
    if (s.fails == name && s.fails_at == n) result = s.fails_with;
  }
  bool fails() const { return result != kGood; }
  State& s;
  std::unique_lock<std::recursive_mutex> lock;
  NcclResult result = kGood;
};

// Rejects use by two threads at once, and use after its end.
class Use {
 public:
  Use(State& s, NcclComm comm) : comm_(comm) {
    if (!s.alive.contains(comm)) {
      violation(s, "a communicator that was aborted, or never made");
      comm_ = nullptr;
    } else if (comm->used.exchange(true)) {
      violation(s, "a communicator that another thread uses");
      comm_ = nullptr;
    }
  }
  ~Use() {
    if (comm_ != nullptr) comm_->used = false;
  }
  Use(const Use&) = delete;
  bool good() const { return comm_ != nullptr; }

 private:
  NcclComm comm_;
};

// The calls of the thread's group, to be made at its end.
struct Grouped {
  NcclComm comm = nullptr;
  bool init = false;
  Sum sum;
};
thread_local int depth = 0;
thread_local std::vector<Grouped> grouped;

size_t size_of(NcclType type) {
  constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kSizes[type];
}

template <class T, class Wide>
void add_as(const std::vector<Sum*>& sums) {
  for (size_t i = 0; i < sums[0]->count; ++i) {
    Wide total = 0;
    for (const Sum* s : sums) {
      T x;
      std::memcpy(&x, s->data + i * sizeof(T), sizeof(T));
      total = static_cast<Wide>(total + static_cast<Wide>(x));
    }
    const T x = static_cast<T>(total);
    for (const Sum* s : sums)
      std::memcpy(s->data + i * sizeof(T), &x, sizeof x);
  }
}

void add(const std::vector<Sum*>& sums) {
  using namespace berth::cuda;
  switch (sums[0]->type) {
    case kNcclInt8:
      return add_as<int8_t, int8_t>(sums);
    case kNcclUint8:
      return add_as<uint8_t, uint8_t>(sums);
    case kNcclInt32:
      return add_as<int32_t, int32_t>(sums);
    case kNcclInt64:
      return add_as<int64_t, int64_t>(sums);
    case kNcclFloat16:
      return add_as<berth::float16_t, float>(sums);
    case kNcclBfloat16:
      return add_as<berth::bfloat16_t, float>(sums);
    case kNcclFloat64:
      return add_as<double, double>(sums);
    default:
      return add_as<float, float>(sums);
  }
}

void hold_stream(State& s, void* stream) {
  s.held.insert(stream);
  driver()->hold(stream, true);
}

// Computes the sums that all ranks have joined.
void advance(State& s, Clique& clique) {
  const auto ready = [](NcclComm c) {
    return c != nullptr && !c->sums.empty();
  };
  while (std::all_of(clique.ranks.begin(), clique.ranks.end(), ready)) {
    std::vector<Sum*> sums;
    for (const NcclComm c : clique.ranks) sums.push_back(&c->sums.front());
    const bool same = std::all_of(sums.begin(), sums.end(), [&](const Sum* m) {
      return m->count == sums[0]->count && m->type == sums[0]->type;
    });
    ++s.sums;
    const bool reports = s.async_at == s.sums;
    if (!same) violation(s, "ranks that do not agree on what is added");
    if (same && !reports && !hangs(s, "sum")) {
      add(sums);
      for (const Sum* m : sums) {
        s.held.erase(m->stream);
        driver()->hold(m->stream, false);
      }
    }
    for (const NcclComm c : clique.ranks) {
      if (reports) c->error = s.async;
      c->sums.erase(c->sums.begin());
    }
  }
}

NcclResult begin_comm(State& s, NcclComm comm) {
  Clique& clique = s.cliques[comm->id];
  clique.ranks.resize(static_cast<size_t>(comm->ranks), nullptr);
  for (const NcclComm other : clique.ranks) {
    if (other != nullptr && other->device == comm->device) {
      return violation(s, "one GPU twice in a communicator");
    }
  }
  clique.ranks[static_cast<size_t>(comm->rank)] = comm;
  comm->under_way = s.later;
  comm->stuck = hangs(s, "init");
  return kGood;
}

NcclResult begin_sum(State& s, NcclComm comm, const Sum& sum) {
  // Holds the stream until the sum is done.
  hold_stream(s, sum.stream);
  comm->streams.insert(sum.stream);
  comm->sums.push_back(sum);
  comm->under_way = s.later;
  comm->stuck = hangs(s, "call");
  advance(s, s.cliques[comm->id]);
  return kGood;
}

// Makes the calls of the group.
NcclResult end_group(State& s) {
  NcclResult result = kGood;
  for (const Grouped& g : std::exchange(grouped, {})) {
    const NcclResult one =
        g.init ? begin_comm(s, g.comm) : begin_sum(s, g.comm, g.sum);
    if (one != kGood) result = one;
  }
  if (result == kGood && (s.later > 0 || !s.hang.empty())) return kUnderWay;
  return result;
}

void fake_begin(const char* description) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.read(description);
  s.calls.clear();
  s.violations.clear();
  s.sums = 0;
  ++s.hangs_until;
  for (void* stream : std::exchange(s.held, {})) driver()->hold(stream, false);
}

long fake_calls(const char* name) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.calls[name];
}

long fake_sums() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.sums;
}

const char* fake_violations() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.shown = s.violations;
  return s.shown.c_str();
}

long fake_communicators() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return static_cast<long>(s.alive.size());
}

// Hangs until the next begin().
void hang_here(Call& c) {
  const uint64_t until = c.s.hangs_until;
  while (c.s.hangs_until == until) {
    c.lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    c.lock.lock();
  }
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE const berth::cuda::FakeNccl berth_fake_nccl;
const berth::cuda::FakeNccl berth_fake_nccl = {
    fake_begin, fake_calls, fake_sums, fake_violations, fake_communicators};

FAKE NcclResult ncclGetVersion(int* version) {
  const Call c("ncclGetVersion");
  *version = c.s.version;
  return c.result;
}

FAKE const char* ncclGetErrorString(NcclResult result) {
  switch (result) {
    case 1:
      return "unhandled cuda error";
    case 3:
      return "internal error";
    case 6:
      return "remote process exited or there was a network error";
    default:
      return "an error of the fake";
  }
}

FAKE const char* ncclGetLastError(NcclComm) { return ""; }

FAKE NcclResult ncclGetUniqueId(NcclId* id) {
  const Call c("ncclGetUniqueId");
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id, &c.s.next_id, sizeof(c.s.next_id));
  ++c.s.next_id;
  return c.result;
}

FAKE NcclResult ncclCommInitRankConfig(NcclComm* comm, int ranks, NcclId id,
                                       int rank, NcclConfig* config) {
  Call c("ncclCommInitRankConfig");
  if (c.fails()) return c.result;
  if (config->size < sizeof(NcclConfig) || config->magic != 0xcafebeef ||
      config->blocking != 0) {
    return violation(c.s, "a configuration that blocks", kArgument);
  }
  const int device = driver()->current();
  if (device < 0) return violation(c.s, "no context");
  auto* made = new berth::cuda::NcclCommunicator;
  std::memcpy(&made->id, &id, sizeof(made->id));
  made->rank = rank;
  made->ranks = ranks;
  made->device = device;
  c.s.alive.insert(made);
  c.s.made.push_back(made);
  *comm = made;
  if (depth == 0 && ranks > 1) return violation(c.s, "ranks without a group");
  grouped.push_back({made, true, {}});
  return kGood;
}

FAKE NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult* result) {
  Call c("ncclCommGetAsyncError");
  if (c.fails()) return c.result;
  // The watcher may ask while another thread calls.
  if (!c.s.alive.contains(comm)) {
    return violation(c.s, "asked a communicator that was aborted");
  }
  const bool under_way = comm->stuck || comm->under_way-- > 0;
  *result = comm->error != kGood ? comm->error : under_way ? kUnderWay : kGood;
  return kGood;
}

FAKE NcclResult ncclCommAbort(NcclComm comm) {
  Call c("ncclCommAbort");
  if (hangs(c.s, "abort")) hang_here(c);
  if (c.fails()) return c.result;
  const Use use(c.s, comm);
  if (!use.good()) return kArgument;
  for (void* stream : comm->streams) {
    c.s.held.erase(stream);
    driver()->hold(stream, false);
  }
  Clique& clique = c.s.cliques[comm->id];
  if (static_cast<size_t>(comm->rank) < clique.ranks.size()) {
    clique.ranks[static_cast<size_t>(comm->rank)] = nullptr;
  }
  c.s.alive.erase(comm);  // kept: late calls are violations, not crashes
  return kGood;
}

FAKE NcclResult ncclGroupStart() {
  const Call c("ncclGroupStart");
  if (c.fails()) return c.result;
  ++depth;
  return kGood;
}

FAKE NcclResult ncclGroupEnd() {
  Call c("ncclGroupEnd");
  if (depth == 0) return violation(c.s, "the end of no group");
  --depth;
  if (hangs(c.s, "ncclGroupEnd")) hang_here(c);
  if (c.fails()) {
    grouped.clear();
    return c.result;
  }
  return depth > 0 ? kGood : end_group(c.s);
}

FAKE NcclResult ncclAllReduce(const void* source, void* target, size_t count,
                              NcclType type, int op, NcclComm comm,
                              CUstream stream) {
  Call c("ncclAllReduce");
  if (c.fails()) return c.result;
  const Use use(c.s, comm);
  if (!use.good()) return kArgument;
  if (comm->stuck || comm->under_way > 0) {
    return violation(c.s, "a communicator that is under way");
  }
  if (op != berth::cuda::kNcclSum || source != target || count == 0) {
    return violation(c.s, "what the fake does not do", kArgument);
  }
  void* data = driver()->touch(reinterpret_cast<uintptr_t>(target),
                               count * size_of(type), comm->device);
  if (data == nullptr) {
    return violation(c.s, "memory that is not the GPU's own", kArgument);
  }
  if (depth == 0) return violation(c.s, "a sum without a group");
  grouped.push_back(
      {comm, false, {static_cast<char*>(data), count, type, stream}});
  return kGood;
}
