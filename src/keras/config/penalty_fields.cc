// Regularizers and constraints in configs.

#include "berth/errors.h"
#include "keras/config/classes.h"
#include "keras/config/custom_objects.h"

namespace berth::keras {

namespace {

Config penalty_config(const char* module, const std::string& class_name,
                      const Config& fields) {
  return Config({{"module", module},
                 {"class_name", class_name},
                 {"config", fields},
                 {"registered_name", nullptr}});
}

Config config_of(const Regularizer::Parameters& parameters) {
  Config config;
  for (const auto& [name, value] : parameters) config.set(name, value);
  return config;
}

// A function of the user's has no name to write.
void check_named(const char* field, const std::string& class_name) {
  if (!class_name.empty()) return;
  throw errors::FailedPrecondition(
      std::string(field) +
      " is a function without a name, which no config can hold; register it, "
      "keras::register_custom_object(\"mine\", fn), and give "
      "{\"mine\", {}, fn}");
}

Regularizer regularizer_from(const NamedConfig& named) {
  Fields f(named.config, named.class_name, {});
  if (named.class_name == "OrthogonalRegularizer") {
    regularizers::OrthogonalOptions o;
    f("factor", o.factor);
    f("mode", o.mode);
    f.done();
    return regularizers::OrthogonalRegularizer(o);
  }
  const std::string& c = named.class_name;
  double l1 = c == "L1L2" ? 0 : 0.01, l2 = l1;
  if (c != "L2") f("l1", l1);
  if (c != "L1") f("l2", l2);
  f.done();
  if (c == "L1") return regularizers::L1(l1);
  return c == "L2" ? regularizers::L2(l2) : regularizers::L1L2(l1, l2);
}

void read_axis(Fields& f, Constraint::Axes& axis) {
  const auto c = f.get("axis");
  if (!c) return;
  if (c->kind() == Config::Kind::kInt) {
    axis = {c->as_int()};
  } else {
    f("axis", axis);
  }
}

Constraint constraint_from(const NamedConfig& named) {
  Fields f(named.config, named.class_name, {});
  constraints::MinMaxNormOptions o;
  const std::string& c = named.class_name;
  if (c == "MaxNorm") o.max_value = 2;
  if (c == "MaxNorm" || c == "MinMaxNorm") f("max_value", o.max_value);
  if (c == "MinMaxNorm") {
    f("min_value", o.min_value);
    f("rate", o.rate);
  }
  if (c != "NonNeg") read_axis(f, o.axis);
  f.done();
  if (c == "MaxNorm") return constraints::MaxNorm(o.max_value, o.axis);
  if (c == "NonNeg") return constraints::NonNeg();
  if (c == "UnitNorm") return constraints::UnitNorm(o.axis);
  return constraints::MinMaxNorm(o);
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> of) {
  for (const char* n : of) {
    if (name == n) return true;
  }
  return false;
}

}  // namespace

void Fields::operator()(const char* name, Regularizer& v) {
  if (!reading()) {
    if (!v) return put(name, nullptr);
    check_named(name, v.class_name());
    Config fields = config_of(v.parameters());
    if (v.class_name() == "OrthogonalRegularizer") {
      const bool rows = fields.contains("rows");
      fields = Config({{"factor", fields.at("factor")},
                       {"mode", rows ? "rows" : "columns"}});
    }
    return put(name,
               penalty_config("keras.regularizers", v.class_name(), fields));
  }
  const auto c = get(name);
  if (!c) return;
  const NamedConfig named = named_config("regularizer", *c, site_);
  const std::string& n = named.class_name;
  if (is_one_of(n, {"L1", "L2", "L1L2", "OrthogonalRegularizer"})) {
    v = regularizer_from(named);
  } else if (const CustomFunction own = find_custom_object(n).function) {
    v = Regularizer(n, {}, own);
  } else if (c->kind() == Config::Kind::kString) {
    v = Regularizer(n);
  } else {
    fail_unknown_class("regularizer", n, site_);
  }
}

void Fields::operator()(const char* name, Constraint& v) {
  if (!reading()) {
    if (!v) return put(name, nullptr);
    check_named(name, v.class_name());
    Config fields = config_of(v.parameters());
    const Constraint::Axes& axis = v.axis();
    if (axis.size() == 1) fields.set("axis", axis[0]);
    if (axis.size() > 1) fields.set("axis", axis);
    return put(name,
               penalty_config("keras.constraints", v.class_name(), fields));
  }
  const auto c = get(name);
  if (!c) return;
  const NamedConfig named = named_config("constraint", *c, site_);
  const std::string& n = named.class_name;
  if (is_one_of(n, {"MaxNorm", "NonNeg", "UnitNorm", "MinMaxNorm"})) {
    v = constraint_from(named);
  } else if (const CustomFunction own = find_custom_object(n).function) {
    v = Constraint(n, {}, {}, own);
  } else if (c->kind() == Config::Kind::kString) {
    v = Constraint(n);
  } else {
    fail_unknown_class("constraint", n, site_);
  }
}

}  // namespace berth::keras
