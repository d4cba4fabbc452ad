// Monitor: the figure that a callback follows.

#ifndef BERTH_KERAS_CALLBACKS_MONITOR_H_
#define BERTH_KERAS_CALLBACKS_MONITOR_H_

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "berth/errors.h"
#include "berth/keras/models.h"

namespace berth::keras::callbacks {

// Says whether a figure became better.
class Monitor {
 public:
  Monitor(const char* who, std::string name, const std::string& mode,
          double min_delta)
      : who_(who), name_(std::move(name)), min_delta_(std::abs(min_delta)) {
    if (mode != "auto" && mode != "min" && mode != "max") {
      throw errors::InvalidArgument(fmt::format(
          "{}: mode is \"{}\"; expected auto, min or max", who, mode));
    }
    const auto has = [&](const char* part) {
      return name_.find(part) != std::string::npos;
    };
    rises_ = mode == "max" ||
             (mode == "auto" && (has("acc") || has("auc") || has("precision") ||
                                 has("recall") || has("f1_score")));
  }

  double worst() const {
    const double inf = std::numeric_limits<double>::infinity();
    return rises_ ? -inf : inf;
  }
  bool better(double now, double than) const {
    return rises_ ? now > than + min_delta_ : now < than - min_delta_;
  }
  const std::string& name() const { return name_; }

  // The value; nullopt after an epoch that did not validate. Throws
  // errors::InvalidArgument when there will be none.
  std::optional<double> value(const Model& model, const Logs& logs) const {
    const auto it = logs.find(name_);
    if (it != logs.end()) return it->second;
    const FitLoop* loop = model.fit_loop();
    const auto next = logs.lower_bound("val_");
    const bool validated =
        next != logs.end() && next->first.rfind("val_", 0) == 0;
    if (name_.rfind("val_", 0) == 0 && loop && loop->has_validation() &&
        !validated) {
      return std::nullopt;
    }
    std::string have;
    for (const auto& [name, value] : logs) have += " " + name;
    throw errors::InvalidArgument(fmt::format(
        "{}: there is no \"{}\"; expected one of{}", who_, name_, have));
  }

 private:
  const char* const who_;
  const std::string name_;
  const double min_delta_;
  bool rises_;
};

}  // namespace berth::keras::callbacks

#endif  // BERTH_KERAS_CALLBACKS_MONITOR_H_
