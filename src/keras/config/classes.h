// The classes that configs name, and how each is made of its fields.

#ifndef BERTH_KERAS_CONFIG_CLASSES_H_
#define BERTH_KERAS_CONFIG_CLASSES_H_

#include <map>
#include <string>
#include <utility>

#include "keras/config/fields.h"

namespace berth::keras {

// A row per class: classes.layers["Dense"] = &layer_of<DenseArgs>. Filled once
// by the functions that classes.cc lists, one per file.
struct Classes {
  std::map<std::string, Layer (*)(Fields&)> layers;
  std::map<std::string, Initializer (*)(Fields&)> initializers;
  std::map<std::string, Optimizer (*)(Fields&)> optimizers;
  std::map<std::string, Loss (*)(Fields&)> losses;
  std::map<std::string, Metric (*)(Fields&)> metrics;
};
const Classes& classes();

// Reads Args and makes of them what Args::make() makes.
template <class Args>
Layer layer_of(Fields& f) {
  Args args;
  args.fields(f);
  f.done();
  return args.make(f.site());
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
  if constexpr (std::is_same_v<decltype(o.dtype), OwnPolicy>) {
    if (o.dtype) layer.set_dtype_policy(*o.dtype);
  }
}

// Notes on a new layer what it was made of; `layer` may be of a derived class.
void describe(const Layer& layer, std::shared_ptr<const Description> how);
// With {.dtype = ...} among its options it has that policy.
template <class Args>
void describe(const Layer& layer, Args args) {
  if constexpr (requires { args.o.dtype; }) set_own_policy(layer, args.o);
  describe(layer, description({}, std::move(args)));
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
