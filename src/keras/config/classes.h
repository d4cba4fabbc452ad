// The classes that configs name, and how each is made of its fields.

#ifndef BERTH_KERAS_CONFIG_CLASSES_H_
#define BERTH_KERAS_CONFIG_CLASSES_H_

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "keras/config/fields.h"

namespace berth::keras {

// A row per class: classes.layers["Dense"] = &layer_of<Dense, dense_fields>.
// Filled once.
struct Classes {
  std::map<std::string, Layer (*)(Fields&)> layers;
  std::map<std::string, Initializer (*)(Fields&)> initializers;
  std::map<std::string, Optimizer (*)(Fields&)> optimizers;
  std::map<std::string, Loss (*)(Fields&)> losses;
  std::map<std::string, Metric (*)(Fields&)> metrics;
};
const Classes& classes();

// Add the rows of one file each, in which they are defined.
using ClassRows = void(Classes& c);
ClassRows add_activation_classes, add_activity_regularization_classes,
    add_adaptive_classes, add_attention_classes, add_auto_contrast_classes,
    add_batch_normalization_classes, add_bidirectional_classes,
    add_category_encoding_classes, add_circle_loss_classes, add_color_classes,
    add_confusion_metric_classes, add_conv_classes, add_conv_lstm_classes,
    add_dense_classes, add_depthwise_conv_classes, add_discretization_classes,
    add_dot_classes, add_dropout_classes, add_einsum_dense_classes,
    add_embedding_classes, add_focal_losses_classes, add_functional_classes,
    add_geometry_classes, add_global_pooling_classes, add_group_query_classes,
    add_gru_classes, add_hashing_classes, add_hinge_losses_classes,
    add_identity_classes, add_initializer_classes, add_input_classes,
    add_iou_metrics_classes, add_lookup_classes, add_lstm_classes,
    add_masking_classes, add_mean_metric_classes, add_merge_classes,
    add_multi_head_attention_classes, add_noise_classes,
    add_normalization_classes, add_normalization_layer_classes,
    add_padding_and_cropping_classes, add_permute_classes, add_pooling_classes,
    add_probabilistic_losses_classes, add_random_color_jitter_classes,
    add_random_erasing_classes, add_random_gaussian_blur_classes,
    add_rectifier_classes, add_region_losses_classes,
    add_regression_losses_classes, add_repeat_vector_classes,
    add_rescaling_classes, add_reshape_classes, add_rms_normalization_classes,
    add_rnn_classes, add_score_metrics_classes, add_sequential_classes,
    add_simple_rnn_classes, add_spectral_classes, add_stacked_classes,
    add_text_classes, add_text_embedding_classes, add_time_distributed_classes,
    add_unit_normalization_classes, add_up_sampling_classes;
namespace optimizers {
ClassRows add_adadelta_classes, add_adafactor_classes, add_adagrad_classes,
    add_adam_classes, add_ftrl_classes, add_lion_classes,
    add_loss_scale_classes, add_rmsprop_classes, add_sgd_classes;
}  // namespace optimizers

// Values that kFields(f, values...) reads or writes. The `name` of options
// among them is a field, too.
template <auto kFields>
struct Values;
template <class... V, void (*kFields)(Fields&, V&...)>
struct Values<kFields> {
  std::tuple<V...> all;
  void fields(Fields& f) {
    std::apply([&](V&... v) { (kFields(f, v...), ..., name_field(f, v)); },
               all);
  }

 private:
  template <class T>
  static void name_field(Fields& f, T& v) {
    if constexpr (requires { v.name; }) f("name", v.name);
  }
};
// Those before any is read.
template <class... V>
std::tuple<V...> blank_values(void (*)(Fields&, V&...)) {
  [[maybe_unused]] const auto blank = []<class T>(std::type_identity<T>) {
    if constexpr (std::is_default_constructible_v<T>) {
      return T();
    } else {
      return T(0);
    }
  };
  return {blank(std::type_identity<V>())...};
}
// The fields of a layer that has a name and no other.
inline void name_only(Fields&, NameOptions&) {}

// Reads the values and makes of them a T, or what the function kMake makes.
template <class T, auto kFields>
Layer layer_of(Fields& f) {
  Values<kFields> values{blank_values(kFields)};
  values.fields(f);
  f.done();
  return std::apply([&](auto&... v) { return Layer(T(v..., f.site())); },
                    values.all);
}
template <auto kMake, auto kFields>
Layer layer_of(Fields& f) {
  Values<kFields> values{blank_values(kFields)};
  values.fields(f);
  f.done();
  return std::apply([&](auto&... v) { return kMake(v..., f.site()); },
                    values.all);
}
// Reads Args and makes of them what Args::make() makes.
template <class Args>
Layer layer_of(Fields& f) {
  Args args;
  args.fields(f);
  f.done();
  return args.make(f.site());
}
template <auto kMake, auto kFields>
auto made_of(Fields& f) {
  Values<kFields> values{blank_values(kFields)};
  values.fields(f);
  f.done();
  return std::apply(kMake, values.all);
}
template <class T, class Args>
T made_of(Fields& f) {
  Args args;
  args.fields(f);
  f.done();
  return args.make();
}

template <class Options>
void set_own_policy(const Layer& layer, const Options& o) {
  if constexpr (requires {
                  requires std::is_same_v<decltype(o.dtype), OwnPolicy>;
                }) {
    if (o.dtype) layer.set_dtype_policy(*o.dtype);
  }
}

// How a value of such a class was made.
template <auto kFields, class... V>
std::shared_ptr<const Description> made_with(std::string class_name,
                                             V... values) {
  return description(std::move(class_name),
                     Values<kFields>{{std::move(values)...}});
}

// Notes on a new layer what it was made of; `layer` may be of a derived class.
void describe(const Layer& layer, std::shared_ptr<const Description> how);
// With {.dtype = ...} among its options it has that policy.
template <class Args>
void describe(const Layer& layer, Args args) {
  if constexpr (requires { args.o; }) set_own_policy(layer, args.o);
  describe(layer, description({}, std::move(args)));
}
template <auto kFields, class... V>
void describe(const Layer& layer, V... values) {
  (set_own_policy(layer, values), ...);
  describe(layer, description({}, Values<kFields>{{std::move(values)...}}));
}

// Makes a layer of class Base of the values, and notes them on it.
template <class Base, auto kFields, class... V>
Layer described(Site site, V... values) {
  const Layer layer(std::make_shared<Base>(values..., site));
  describe<kFields>(layer, std::move(values)...);
  return layer;
}

// What the fields of `how` are now: {"class_name": ..., "config": {...}}.
Config config_of(const Description& how);
// The class and the config in what serialize() gave; a text is a class without
// fields. Throws errors::InvalidArgument unless it is one, naming `kind`.
struct NamedConfig {
  std::string class_name;
  Config config;
};
NamedConfig named_config(const char* kind, const Config& c, Site site);
// "there is no layer of class ...", and how to register one.
[[noreturn]] void fail_unknown_class(const char* kind, const std::string& name,
                                     Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_CONFIG_CLASSES_H_
