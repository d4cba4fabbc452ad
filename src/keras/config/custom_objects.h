// What users registered by name. Thread-safe.

#ifndef BERTH_KERAS_CONFIG_CUSTOM_OBJECTS_H_
#define BERTH_KERAS_CONFIG_CUSTOM_OBJECTS_H_

#include <string>

#include "berth/keras/saving.h"

namespace berth::keras {

// Empty when there is none.
struct CustomObject {
  LayerFactory layer = {};
  InitializerFactory initializer = {};
  OptimizerFactory optimizer = {};
  LossFactory loss = {};
  MetricFactory metric = {};
  CustomFunction function = {};
};
CustomObject find_custom_object(const std::string& name);

}  // namespace berth::keras

#endif  // BERTH_KERAS_CONFIG_CUSTOM_OBJECTS_H_
