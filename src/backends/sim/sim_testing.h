// Shared by the tests of this module: two simulated devices and small works.

#ifndef BERTH_BACKENDS_SIM_SIM_TESTING_H_
#define BERTH_BACKENDS_SIM_SIM_TESTING_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "backends/sim/faults.h"
#include "backends/sim/sim.h"
#include "base/errors_testing.h"
#include "device/device_manager.h"

namespace berth::sim {

// Returns GPU:`index` of this process; every test program here has two, which
// lack the kernel of Floor.
inline Device& gpu(int index) {
  return DeviceManager::get().lookup(
      DeviceName::parse("/GPU:" + std::to_string(index)));
}

// Work that calls `fn`.
inline Work call(std::function<void()> fn, const char* what = "Call") {
  Work work;
  work.what = what;
  work.site = Site{"model.cc", 7};
  work.context =
      std::make_unique<std::function<void()>>(std::move(fn)).release();
  work.run = [](void* c, Stream&) {
    (*static_cast<std::function<void()>*>(c))();
  };
  work.drop = [](void* c) {
    std::unique_ptr<std::function<void()>>(
        static_cast<std::function<void()>*>(c));
  };
  return work;
}

// Ends all faults and errors at the end of a test.
struct Clean {
  ~Clean() {
    for (int i = 0; i < 2; ++i) {
      clear_faults(gpu(i));
      gpu(i).reset_error();
    }
    set_seed(gpu(0), 0);
  }
};

}  // namespace berth::sim

#endif  // BERTH_BACKENDS_SIM_SIM_TESTING_H_
