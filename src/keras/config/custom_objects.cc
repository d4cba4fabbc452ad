// The table of what users registered by name.

#include "keras/config/custom_objects.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::keras {

namespace {

using CustomObjects = std::map<std::string, CustomObject>;

std::mutex g_custom_mutex;
CustomObjects& custom_objects() {
  static auto& objects = immortal<CustomObjects>();
  return objects;
}

template <class Fn>
void add_custom(const std::string& name, Fn CustomObject::*member, Fn fn) {
  if (name.empty() || !fn) {
    throw errors::InvalidArgument(
        fmt::format("register_custom_object(\"{}\"): {}", name,
                    name.empty() ? "the name is empty; expected that of a class"
                                 : "the function is empty"));
  }
  std::lock_guard lock(g_custom_mutex);
  custom_objects()[name].*member = std::move(fn);
}

}  // namespace

CustomObject find_custom_object(const std::string& name) {
  std::lock_guard lock(g_custom_mutex);
  const auto it = custom_objects().find(name);
  return it == custom_objects().end() ? CustomObject() : it->second;
}

void register_custom_object(const std::string& name, LayerFactory object) {
  add_custom(name, &CustomObject::layer, std::move(object));
}
void register_custom_object(const std::string& name,
                            InitializerFactory object) {
  add_custom(name, &CustomObject::initializer, std::move(object));
}
void register_custom_object(const std::string& name, OptimizerFactory object) {
  add_custom(name, &CustomObject::optimizer, std::move(object));
}
void register_custom_object(const std::string& name, LossFactory object) {
  add_custom(name, &CustomObject::loss, std::move(object));
}
void register_custom_object(const std::string& name, MetricFactory object) {
  add_custom(name, &CustomObject::metric, std::move(object));
}
void register_custom_object(const std::string& name, CustomFunction object) {
  add_custom(name, &CustomObject::function, std::move(object));
}

struct CustomObjectScope::Saved {
  CustomObjects objects;
};
CustomObjectScope::CustomObjectScope() {
  std::lock_guard lock(g_custom_mutex);
  saved_ = std::make_unique<Saved>(Saved{custom_objects()});
}
CustomObjectScope::~CustomObjectScope() {
  std::lock_guard lock(g_custom_mutex);
  custom_objects() = std::move(saved_->objects);
}

}  // namespace berth::keras
