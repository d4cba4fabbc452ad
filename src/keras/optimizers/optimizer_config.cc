// Options that optimizers share, in configs.

#include "keras/optimizers/optimizer_config.h"

#include "berth/errors.h"

namespace berth::keras {

namespace {

// Numbers of a schedule's config by name.
struct ScheduleFields {
  Fields f;

  double number(const char* name, double otherwise) {
    f(name, otherwise);
    return otherwise;
  }
  double must(const char* name) {
    double v = 0;
    f.must(name, v);
    return v;
  }
  int64_t steps(const char* name) {
    int64_t v = 0;
    f.must(name, v);
    return v;
  }
  bool flag(const char* name) {
    bool v = false;
    f(name, v);
    return v;
  }
};

LearningRateSchedule schedule_from(const NamedConfig& named) {
  using namespace optimizers::schedules;
  const std::string& c = named.class_name;
  ScheduleFields s{Fields(named.config, c, {})};
  LearningRateSchedule made;
  if (c == "PiecewiseConstantDecay") {
    std::vector<int64_t> boundaries;
    std::vector<double> values;
    s.f.must("boundaries", boundaries);
    s.f.must("values", values);
    made = PiecewiseConstantDecay(boundaries, values);
  } else if (c == "ExponentialDecay" || c == "InverseTimeDecay") {
    const double first = s.must("initial_learning_rate");
    const int64_t steps = s.steps("decay_steps");
    const double rate = s.must("decay_rate");
    const StaircaseOptions o{.staircase = s.flag("staircase")};
    made = c == "ExponentialDecay" ? ExponentialDecay(first, steps, rate, o)
                                   : InverseTimeDecay(first, steps, rate, o);
  } else if (c == "PolynomialDecay") {
    const double first = s.must("initial_learning_rate");
    const int64_t steps = s.steps("decay_steps");
    PolynomialDecayOptions o;
    o.end_learning_rate = s.number("end_learning_rate", o.end_learning_rate);
    o.power = s.number("power", o.power);
    o.cycle = s.flag("cycle");
    made = PolynomialDecay(first, steps, o);
  } else if (c == "CosineDecay") {
    const double first = s.must("initial_learning_rate");
    const int64_t steps = s.steps("decay_steps");
    CosineDecayOptions o;
    o.alpha = s.number("alpha", 0);
    s.f("warmup_target", o.warmup_target);
    s.f("warmup_steps", o.warmup_steps);
    made = CosineDecay(first, steps, o);
  } else if (c == "CosineDecayRestarts") {
    const double first = s.must("initial_learning_rate");
    const int64_t steps = s.steps("first_decay_steps");
    CosineDecayRestartsOptions o;
    o.t_mul = s.number("t_mul", o.t_mul);
    o.m_mul = s.number("m_mul", o.m_mul);
    o.alpha = s.number("alpha", o.alpha);
    made = CosineDecayRestarts(first, steps, o);
  } else {
    fail_unknown_class("schedule", c, {});
  }
  s.f.done();
  return made;
}

Config config_of(const LearningRateSchedule& schedule) {
  if (schedule.class_name().empty()) {
    throw errors::FailedPrecondition(
        "learning_rate is a schedule of your own, which no config can hold; "
        "expected one of keras::optimizers::schedules, or a number");
  }
  Config config;
  for (const auto& [name, values] : schedule.parameters()) {
    const bool flag = name == "staircase" || name == "cycle";
    const bool whole = name.ends_with("_steps") || name == "boundaries";
    std::vector<Config> list;
    for (double v : values) {
      if (flag) {
        list.emplace_back(v != 0);
      } else if (whole) {
        list.emplace_back(static_cast<int64_t>(v));
      } else {
        list.emplace_back(v);
      }
    }
    const bool is_list = name == "boundaries" || name == "values";
    config.set(name, is_list ? Config(list) : list.at(0));
  }
  return Config({{"module", "keras.optimizers.schedules"},
                 {"class_name", schedule.class_name()},
                 {"config", config},
                 {"registered_name", nullptr}});
}

}  // namespace

double current_rate(const Optimizer& optimizer) {
  const LearningRateSchedule& schedule = optimizer.schedule();
  if (!schedule) return optimizer.learning_rate().value().item<double>();
  return schedule(optimizer.iterations().value().item<int64_t>());
}

void rate_field(Fields& f, LearningRate& rate) {
  const char* name = "learning_rate";
  if (!f.reading()) {
    f.put(name,
          rate.schedule() ? config_of(rate.schedule()) : Config(rate.value()));
    return;
  }
  const auto c = f.get(name);
  if (c && c->kind() == Config::Kind::kObject) {
    rate = schedule_from(named_config("schedule", *c, f.site()));
    return;
  }
  double value = rate.value();
  f(name, value);
  rate = value;
}

}  // namespace berth::keras
