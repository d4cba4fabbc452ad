// saving: the structure of layers and models, as JSON (tf.keras.saving).
//
//   keras::Config config = model.get_config();
//   keras::Layer twin = model.from_config(config);     // weights of its own
//   keras::Model again = keras::model_from_json(model.to_json());
//
// Classes and fields have Keras' names. Nothing in a config is ever executed:
// your own code is found by the name that it was registered under.
// Thread-safe; a Config belongs to one thread at a time.

#ifndef BERTH_KERAS_SAVING_H_
#define BERTH_KERAS_SAVING_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "berth/keras/initializers.h"
#include "berth/keras/layers.h"
#include "berth/keras/losses.h"
#include "berth/keras/metrics.h"
#include "berth/keras/optimizers.h"

namespace berth::keras {

// A JSON value: most often an object, whose fields keep their order.
//   keras::Config({{"units", 64}, {"activation", "relu"}})
class Config {
 public:
  enum class Kind { kNull, kBool, kInt, kDouble, kString, kList, kObject };

  Config();                                                   // {}
  Config(std::nullptr_t);                                     // NOLINT: null
  Config(bool value);                                         // NOLINT
  Config(int value) : Config(static_cast<int64_t>(value)) {}  // NOLINT
  Config(int64_t value);                                      // NOLINT
  Config(double value);                                       // NOLINT
  Config(const char* value);                                  // NOLINT
  Config(const std::string& value);                           // NOLINT
  Config(const std::vector<Config>& list);                    // NOLINT
  Config(const std::vector<int64_t>& list);                   // NOLINT
  Config(const std::vector<std::string>& list);               // NOLINT
  Config(std::initializer_list<std::pair<std::string, Config>> fields);
  ~Config();
  Config(const Config& other);
  Config(Config&& other) noexcept;
  Config& operator=(Config other) noexcept;

  // Throws errors::InvalidArgument, with the line, for text that is not JSON,
  // nested deeper than 200, or longer than 256 MiB.
  static Config parse(const std::string& json, Site site = Site::here());
  // On one line, or `indent` spaces deeper per level.
  std::string str(int indent = -1) const;

  Kind kind() const;
  // Throw errors::InvalidArgument if the value is something else. An integer is
  // a double, too.
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;
  std::string as_string() const;
  std::vector<Config> as_list() const;

  // Members of an object. at() throws errors::NotFound, which lists the names.
  bool contains(const std::string& name) const;
  Config at(const std::string& name) const;
  std::vector<std::string> names() const;
  // Sets a field, new or not; returns *this.
  Config& set(const std::string& name, const Config& value);

  bool operator==(const Config& other) const;

 private:
  struct Json;
  explicit Config(std::unique_ptr<Json> json);
  std::unique_ptr<Json> json_;
};

// Makes an object of your own class from its get_config().
using LayerFactory = std::function<Layer(const Config& config)>;
using InitializerFactory = std::function<Initializer(const Config& config)>;
using OptimizerFactory = std::function<Optimizer(const Config& config)>;
using LossFactory = std::function<Loss(const Config& config)>;
using MetricFactory = std::function<Metric(const Config& config)>;
// An activation, or the function of a Lambda.
using CustomFunction = std::function<Tensor(const Tensor& x)>;

// From now on configs with this class name, and options with this name
// ({.activation = "mine"}, {.loss = "mine"}), mean `object`
// (tf.keras.saving.register_keras_serializable). A layer's name is the `type`
// that it gives LayerBase. Registering a name again replaces it. Throws
// errors::InvalidArgument for an empty name or function.
void register_custom_object(const std::string& name, LayerFactory object);
void register_custom_object(const std::string& name, InitializerFactory object);
void register_custom_object(const std::string& name, OptimizerFactory object);
void register_custom_object(const std::string& name, LossFactory object);
void register_custom_object(const std::string& name, MetricFactory object);
void register_custom_object(const std::string& name, CustomFunction object);

// Objects registered while it lives are forgotten when it ends.
//   const keras::CustomObjectScope scope;
//   keras::register_custom_object("Residual", ...);
class CustomObjectScope {
 public:
  CustomObjectScope();
  ~CustomObjectScope();
  CustomObjectScope(const CustomObjectScope&) = delete;
  CustomObjectScope& operator=(const CustomObjectScope&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

// {"class_name": "Dense", "config": {...}}; a layer that was called also has
// the shapes that it was built for, and is built again. serialize() throws
// errors::FailedPrecondition for a function without a name or a class without
// get_config(); deserialize() throws errors::InvalidArgument for fields of a
// wrong type, unknown fields, or a class that is not registered.
namespace layers {
Config serialize(const Layer& layer);
Layer deserialize(const Config& config, Site site = Site::here());
}  // namespace layers
namespace initializers {
Config serialize(const Initializer& initializer);
Initializer deserialize(const Config& config);
}  // namespace initializers
namespace optimizers {
Config serialize(const Optimizer& optimizer);
Optimizer deserialize(const Config& config);
}  // namespace optimizers
namespace losses {
Config serialize(const Loss& loss);
Loss deserialize(const Config& config);
}  // namespace losses
namespace metrics {
Config serialize(const Metric& metric);
Metric deserialize(const Config& config);
}  // namespace metrics

// Names of layers and other classes that configs know without registration.
namespace saving {
std::vector<std::string> layer_classes();
std::vector<std::string> initializer_classes();
std::vector<std::string> optimizer_classes();
std::vector<std::string> loss_classes();
std::vector<std::string> metric_classes();
}  // namespace saving

}  // namespace berth::keras

#endif  // BERTH_KERAS_SAVING_H_
