// get_config() and from_config(): layers and the classes that options name.

#include <fmt/format.h>

#include <optional>

#include "base/where.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/keras/recurrent_layers.h"
#include "function/abstract_call.h"
#include "keras/config/classes.h"
#include "keras/config/custom_objects.h"
#include "keras/layers/rnn.h"
#include "keras/models/layer_state.h"
#include "keras/models/policy_scope.h"
#include "keras/optimizers/optimizer_base.h"

namespace berth::keras {

Config config_of(const Description& how) {
  Config fields;
  Fields f(&fields);
  how.write(f);
  return Config({{"class_name", how.class_name}, {"config", fields}});
}

NamedConfig named_config(const char* kind, const Config& c, Site site) {
  if (c.kind() == Config::Kind::kString) return {c.as_string(), Config()};
  const bool good = c.contains("class_name") &&
                    c.at("class_name").kind() == Config::Kind::kString;
  if (!good) {
    throw errors::InvalidArgument(fmt::format(
        "the config of a {}{} is {}; expected {{\"class_name\": ..., "
        "\"config\": {{...}}}}",
        kind, where_text(nullptr, site), c.str().substr(0, 60)));
  }
  // Keras writes "Package>Name" for what is registered.
  std::string name = c.at("class_name").as_string();
  const size_t package = name.rfind('>');
  if (package != std::string::npos) name.erase(0, package + 1);
  return {name, c.contains("config") ? c.at("config") : Config()};
}

void fail_unknown_class(const char* kind, const std::string& name, Site site) {
  throw errors::InvalidArgument(fmt::format(
      "there is no {} of class \"{}\"{}; if it is your own, register it "
      "before: keras::register_custom_object(\"{}\", "
      "[](const keras::Config& c) {{ ... }})",
      kind, name.substr(0, 60), where_text(nullptr, site), name.substr(0, 60)));
}

void describe(const Layer& layer, std::shared_ptr<const Description> how) {
  layer.base()->state().description = std::move(how);
}

Config LayerBase::get_config() const {
  if (!state_->description) {
    throw errors::FailedPrecondition(fmt::format(
        "class {} has no get_config(){}; to save what holds it, override "
        "get_config() and call keras::register_custom_object(\"{}\", ...), or "
        "save the weights alone: save_weights()",
        state_->type, where_text(state_->stable_name, state_->site),
        state_->type));
  }
  return config_of(*state_->description).at("config");
}

Config Layer::get_config() const {
  Config config({{"name", name()}, {"trainable", trainable()}});
  const LayerState& s = base_->state();
  // Absent: float32. Models have the policies of their layers.
  if (!(s.policy == DTypePolicy()) && s.type != "Model" &&
      s.type != "Sequential" && s.type != "InputLayer") {
    Config named;
    named.set("name", s.policy.name());
    config.set("dtype", Config({{"module", "keras"},
                                {"class_name", "DTypePolicy"},
                                {"config", named},
                                {"registered_name", nullptr}}));
  }
  const Config own = base_->get_config();
  for (const std::string& field : own.names()) {
    if (!config.contains(field)) config.set(field, own.at(field));
  }
  return config;
}

namespace {

Config dims_of(const Shape& shape) {
  Config config;
  Fields f(&config);
  Shape dims = shape;
  f("shape", dims);
  return config.at("shape");
}

// What the layer was called with first.
std::optional<Config> build_config(const LayerBase& layer) {
  const LayerState& s = layer.state();
  if (!s.build.done || s.build.input_specs.empty()) return std::nullopt;
  std::vector<Config> shapes, dtypes;
  for (const TensorSpec& spec : s.build.input_specs) {
    shapes.push_back(dims_of(spec.shape));
    dtypes.push_back(name_of(spec.dtype));
  }
  const bool one = shapes.size() == 1;
  if (!one && dynamic_cast<const RecurrentBase*>(&layer) != nullptr) {
    // As Keras names the arguments of build().
    const std::vector<Config> states(shapes.begin() + 1, shapes.end());
    Config named;
    named.set("sequences_shape", shapes[0]);
    named.set("initial_state_shape",
              states.size() == 1 ? states[0] : Config(states));
    return Config({{"shapes_dict", named}});
  }
  return Config({{"input_shape", one ? shapes[0] : Config(shapes)},
                 {"input_dtype", one ? dtypes[0] : Config(dtypes)}});
}

bool is_shape(const Config& c) {
  for (const Config& e : c.as_list()) {
    if (e.kind() == Config::Kind::kList) return false;
  }
  return true;
}

// One shape, or a list of them.
std::vector<TensorSpec> specs_of(const Config& build, Site site) {
  std::vector<TensorSpec> specs;
  if (!build.contains("input_shape")) return specs;
  const Config shapes = build.at("input_shape");
  if (shapes.kind() != Config::Kind::kList) return specs;
  const bool one = is_shape(shapes);
  Config list = one ? Config(std::vector<Config>{shapes}) : shapes;
  Config dtypes = build.contains("input_dtype") ? build.at("input_dtype")
                                                : Config(std::vector<Config>{});
  if (dtypes.kind() == Config::Kind::kString) {
    dtypes = Config(std::vector<Config>{dtypes});
  }
  const std::vector<Config> named = dtypes.as_list();
  for (const Config& shape : list.as_list()) {
    Config fields({{"shape", shape}});
    if (specs.size() < named.size()) fields.set("dtype", named[specs.size()]);
    Fields f(fields, "build_config", site);
    TensorSpec spec;
    f("shape", spec.shape);
    f("dtype", spec.dtype);
    specs.push_back(spec);
  }
  return specs;
}

void build_again(const Layer& layer, const Config& build, Site site) {
  if (layer.built()) return;
  const std::vector<TensorSpec> specs = specs_of(build, site);
  // Keras says no states of a cell: what runs it builds it.
  const bool cell = dynamic_cast<RNNCellBase*>(layer.base().get()) != nullptr;
  if (specs.size() <= (cell ? 1u : 0u)) return;
  LayerState& s = layer.base()->state();
  if (s.on_host) {
    s.build.input_specs = specs;
    s.build.done = true;
    return;
  }
  abstract_call([&](const Tensors& x) { return layer(x, false); }, specs);
}

// Keras' name of the class.
const char* class_of(const LayerState& s) {
  return s.type == "Model" ? "Functional" : s.type.c_str();
}

void take_name(const Layer& layer, const std::string& name) {
  LayerState& s = layer.base()->state();
  if (s.build.done || name.empty())
    return;  // its weights have it in their names
  s.name = name;
  s.stable_name = intern(name);
}

// Makes a layer of the user's class, or of one in the table.
Layer made_layer(const NamedConfig& named, Site site) {
  if (const LayerFactory own = find_custom_object(named.class_name).layer) {
    const Layer layer = own(named.config);
    if (named.config.contains("name")) {
      take_name(layer, named.config.at("name").as_string());
    }
    return layer;
  }
  const auto& all = classes().layers;
  const auto it = all.find(named.class_name);
  if (it == all.end()) fail_unknown_class("layer", named.class_name, site);
  Fields f(named.config, named.class_name, site);
  return it->second(f);
}

// The name alone or, as Keras writes it, in a config. A class of its own may
// mean something else by "dtype".
DTypePolicy policy_in(const Config& c) {
  if (!c.contains("dtype")) return {};
  Config dtype = c.at("dtype");
  if (dtype.kind() == Config::Kind::kObject && dtype.contains("config")) {
    dtype = dtype.at("config");
    if (!dtype.contains("name")) return {};
    dtype = dtype.at("name");
    return dtype.as_string();
  }
  if (dtype.kind() != Config::Kind::kString) return {};
  const std::string name = dtype.as_string();
  return name.rfind("mixed_", 0) == 0 ? DTypePolicy(name) : DTypePolicy();
}

Layer layer_from(const NamedConfig& named, Site site) {
  const PolicyScope policy(policy_in(named.config));
  const Layer layer = made_layer(named, site);
  Fields f(named.config, named.class_name, site);
  bool trainable = true;
  f("trainable", trainable);
  if (!trainable) layer.set_trainable(false);
  return layer;
}

}  // namespace

Config Layer::get_build_config() const {
  const auto config = build_config(*base_);
  if (config) return *config;
  throw errors::FailedPrecondition(fmt::format(
      "get_build_config: layer \"{}\" is not built{}; expected it to be called "
      "or built first",
      name(), where_text(nullptr, base_->site())));
}
void Layer::build_from_config(const Config& config) const {
  build_again(*this, config, base_->site());
}

Layer Layer::from_config(const Config& config, Site site) const {
  return layer_from({class_of(base_->state()), config}, site);
}

namespace layers {

Config serialize(const Layer& layer) {
  const LayerState& s = layer.base()->state();
  const bool is_model = s.type == "Model" || s.type == "Sequential";
  const bool own = static_cast<bool>(find_custom_object(s.type).layer);
  Config c({{"module", is_model ? "keras" : "keras.layers"},
            {"class_name", class_of(s)},
            {"config", layer.get_config()},
            {"registered_name", own ? Config(s.type) : Config(nullptr)}});
  if (const auto build = build_config(*layer.base())) {
    c.set("build_config", *build);
  }
  if (!s.scope.device.empty()) c.set("device", s.scope.device);
  return c;
}

Layer deserialize(const Config& config, Site site) {
  const NamedConfig named = named_config("layer", config, site);
  std::optional<DeviceGuard> on;
  // The scope that is open here counts more than that of old.
  if (config.contains("device") && !t_state.scope) {
    on.emplace(config.at("device").as_string(), site);
  }
  const Layer layer = layer_from(named, site);
  if (config.contains("build_config")) {
    const Config build = config.at("build_config");
    if (build.kind() == Config::Kind::kObject) build_again(layer, build, site);
  }
  return layer;
}

}  // namespace layers

namespace {

// Makes an object of the user's class, or of one in a table.
template <class T, class Custom>
T deserialized(const char* kind, const Config& config,
               const std::map<std::string, T (*)(Fields&)>& table,
               Custom CustomObject::*custom) {
  const NamedConfig named = named_config(kind, config, {});
  if (const Custom own = find_custom_object(named.class_name).*custom) {
    return own(named.config);
  }
  const auto it = table.find(named.class_name);
  if (it == table.end()) {
    // Keras writes functions of its own by their names.
    if (config.kind() == Config::Kind::kString) return T(named.class_name);
    fail_unknown_class(kind, named.class_name, {});
  }
  Fields f(named.config, named.class_name, {});
  return it->second(f);
}

Config serialized(const char* kind, const char* module,
                  const std::shared_ptr<const Description>& how) {
  if (!how) {
    throw errors::FailedPrecondition(fmt::format(
        "this {0} is a function without a name, which no config can hold; "
        "register it, keras::register_custom_object(\"mine\", ...), and give "
        "its name: \"mine\"",
        kind));
  }
  const Config own = config_of(*how);
  return Config({{"module", module},
                 {"class_name", own.at("class_name")},
                 {"config", own.at("config")},
                 {"registered_name", nullptr}});
}

template <class T>
std::vector<std::string> names_in(
    const std::map<std::string, T (*)(Fields&)>& table) {
  std::vector<std::string> names;
  for (const auto& row : table) names.push_back(row.first);
  return names;
}

}  // namespace

namespace initializers {
Config serialize(const Initializer& initializer) {
  return serialized("initializer", "keras.initializers",
                    initializer.description());
}
Initializer deserialize(const Config& config) {
  return deserialized<Initializer>("initializer", config,
                                   classes().initializers,
                                   &CustomObject::initializer);
}
}  // namespace initializers

namespace losses {
Config serialize(const Loss& loss) {
  return serialized("loss", "keras.losses", loss.description());
}
Loss deserialize(const Config& config) {
  return deserialized<Loss>("loss", config, classes().losses,
                            &CustomObject::loss);
}
}  // namespace losses

namespace metrics {
Config serialize(const Metric& metric) {
  return serialized("metric", "keras.metrics", metric.description());
}
Metric deserialize(const Config& config) {
  return deserialized<Metric>("metric", config, classes().metrics,
                              &CustomObject::metric);
}
}  // namespace metrics

namespace optimizers {
Config serialize(const Optimizer& optimizer) {
  return serialized("optimizer", "keras.optimizers",
                    optimizer.base()->description);
}
Optimizer deserialize(const Config& config) {
  return deserialized<Optimizer>("optimizer", config, classes().optimizers,
                                 &CustomObject::optimizer);
}
}  // namespace optimizers

namespace saving {
std::vector<std::string> layer_classes() { return names_in(classes().layers); }
std::vector<std::string> initializer_classes() {
  return names_in(classes().initializers);
}
std::vector<std::string> optimizer_classes() {
  return names_in(classes().optimizers);
}
std::vector<std::string> loss_classes() { return names_in(classes().losses); }
std::vector<std::string> metric_classes() {
  return names_in(classes().metrics);
}
}  // namespace saving

}  // namespace berth::keras
