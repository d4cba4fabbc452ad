// What a process did so far, counted while somebody may ask (`berth top`, the
// endpoint of BERTH_HTTP_PORT). Off, it costs one load. Thread-safe.

#ifndef BERTH_BASE_LIVE_COUNTS_H_
#define BERTH_BASE_LIVE_COUNTS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"

namespace berth::live_counts {

inline std::atomic<bool> g_is_on{false};
inline bool is_on() { return g_is_on.load(std::memory_order_relaxed); }

struct Counts {
  std::map<std::string, int64_t> calls;  // that ended, by function
  double input_wait_us = 0;
  int64_t steps = 0, examples = 0;  // of fit
  std::map<std::string, double> peer_wait_us;
  struct Exchanges {
    int64_t count = 0, bytes = 0;
    double us = 0;
  };
  std::map<std::string, Exchanges> exchanges;  // that ended, by kind
  int64_t sent_bytes = 0, received_bytes = 0;  // by sockets between tasks
};

// This process in its cluster; told at any time, even while nobody may ask.
struct ClusterState {
  enum Phase { kNone, kForming, kRunning, kFailed, kEnded };
  Phase phase = kNone;
  std::string task = {};
  uint64_t generation = 0;
};

void add_call(const std::string& function);
void add_input_wait(double us);
void add_step(int64_t examples);
// These may be called by plug-ins at any time: they look themselves.
void add_peer_wait(const std::string& peer, double us);
void add_exchange(const char* kind, int64_t bytes, double us);
void add_sent(int64_t bytes);
void add_received(int64_t bytes);
Counts read();

// Has `fn`, which may not throw, called once the devices exist: for static
// initialisers.
void when_devices_exist(void (*fn)());
void devices_exist();

void set_cluster(ClusterState state);
ClusterState cluster();

// Adds how long it lives as a wait for input.
class InputWait {
 public:
  InputWait() : begin_us_(is_on() ? host_clock_us() : -1) {}
  ~InputWait() {
    if (begin_us_ >= 0) add_input_wait(host_clock_us() - begin_us_);
  }
  InputWait(const InputWait&) = delete;
  InputWait& operator=(const InputWait&) = delete;

 private:
  const double begin_us_;
};

}  // namespace berth::live_counts

#endif  // BERTH_BASE_LIVE_COUNTS_H_
