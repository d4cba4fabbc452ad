// What tests of models under strategies share: devices, on any machine, and
// numbers to learn from. Tests only.

#ifndef BERTH_KERAS_TRAINING_STRATEGY_TESTING_H_
#define BERTH_KERAS_TRAINING_STRATEGY_TESTING_H_

#include <span>
#include <string>
#include <vector>

#include "berth/berth.h"
#include "device/gpu_testing.h"

namespace berth::keras {

// So many devices of one kind. Return their names. Core sets share the cores.
inline std::vector<std::string> cpus(int n) {
  test::use_no_gpus();
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      std::vector<config::LogicalDeviceConfiguration>(
          static_cast<size_t>(n), {.workers = 2, .shared = true}));
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) names.push_back("/CPU:" + std::to_string(i));
  return names;
}
inline std::vector<std::string> gpus(int n) {
  test::use_gpus(n);
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) names.push_back("/GPU:" + std::to_string(i));
  return names;
}

inline Tensor numbers(const Shape& shape, float scale = 0.02f) {
  std::vector<float> v(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = scale * static_cast<float>(static_cast<int>(i * 37 % 101) - 50);
  }
  return constant(std::span<const float>(v), shape);
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_STRATEGY_TESTING_H_
