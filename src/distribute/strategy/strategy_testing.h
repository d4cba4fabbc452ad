// Shared by tests of strategies: two replicas in a process of their own.

#ifndef BERTH_DISTRIBUTE_STRATEGY_STRATEGY_TESTING_H_
#define BERTH_DISTRIBUTE_STRATEGY_STRATEGY_TESTING_H_

#include <cstdlib>
#include <functional>
#include <vector>

#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/distribute.h"
#include "device/gpu_testing.h"

namespace berth::distribute {

// Neither reads nor writes the costs stored on the machine. Returns true, so
// that it can run before main().
inline bool keep_no_costs() {
  for (const char* name : {"BERTH_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) {
    setenv(name, "", 1);
  }
  return true;
}

// Two devices, on any machine: unpinned core sets, or GPUs.
inline void two(bool gpus) {
  if (gpus) return test::use_gpus(2);
  test::use_no_gpus();
  config::set_logical_device_configuration(
      config::list_physical_devices("CPU")[0],
      {{.workers = 1, .shared = true}, {.workers = 1, .shared = true}});
}

inline void in_a_fresh_process(const std::function<void()>& body) {
  IN_A_FRESH_PROCESS(body());
}

// Runs `body` on core sets, then on GPUs.
inline void on_two(const std::function<void(const MirroredStrategy&)>& body) {
  for (const bool gpus : {false, true}) {
    in_a_fresh_process([&] {
      two(gpus);
      body(MirroredStrategy());
    });
  }
}

inline std::vector<float> values(const Tensor& t) {
  return t.to_vector<float>();
}

inline PerReplica pair_of(const Tensor& a, const Tensor& b) {
  return PerReplica({a, b});
}

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_STRATEGY_TESTING_H_
