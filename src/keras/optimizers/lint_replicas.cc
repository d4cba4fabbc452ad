// Compares copies of weights that must stay equal.

#include "keras/optimizers/lint_replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>

#include "base/diagnostics.h"
#include "base/immortal.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "keras/optimizers/optimizer_base.h"
#include "tensor/variable_state.h"

namespace berth::keras {

namespace {

// Larger models are not read.
constexpr int64_t kMaxElements = 1 << 22;
// Further apart than rounding on different devices makes values.
constexpr double kApart = 1e-3;

struct Copy {
  std::vector<Variable> variables;
  const Device* device = nullptr;
  std::string lines;  // of the variables, with their shapes
  size_t first = 0;   // hash of all values before the first step
  int step = 0;       // begun last
};

struct Copies {
  std::mutex mutex;
  std::map<const OptimizerBase*, Copy> of;
};

Copies& copies() {
  static auto& c = immortal<Copies>();
  return c;
}

std::vector<double> values_of(const Variable& v) {
  return read_variable(v.handle()).to_vector<double>();
}

// False unless all variables lie on one device and are not too large. Values
// of all count: biases begin equal in any two models.
bool describe(const std::vector<Variable>& variables, Copy* copy) {
  int64_t elements = 0;
  for (const Variable& v : variables) {
    const VariableState& s = variable_state(v.handle());
    if (s.site.file == nullptr || !is_floating(s.dtype)) return false;
    if (copy->device != nullptr && copy->device != s.device) return false;
    copy->device = s.device;
    copy->lines += fmt::format("{}:{} {} ", s.site.file, s.site.line,
                               TensorSpec{s.shape, s.dtype, {}}.str());
    elements += s.shape.num_elements();
  }
  if (elements == 0 || elements > kMaxElements) return false;
  copy->variables = variables;
  for (const Variable& v : variables) {
    const std::vector<double> x = values_of(v);
    const std::string_view bytes(reinterpret_cast<const char*>(x.data()),
                                 x.size() * sizeof(double));
    copy->first = copy->first * 31 + std::hash<std::string_view>{}(bytes);
  }
  return true;
}

void report_drift(const Variable& a, const Variable& b, double x, double y) {
  const VariableState& va = variable_state(a.handle());
  const VariableState& vb = variable_state(b.handle());
  const std::string where = where_text(nullptr, va.site);
  report_once(
      where,
      {"unaveraged-replicas", debugging::Severity::kLint,
       fmt::format("\"{}\" on {} and \"{}\" on {} are copies of one "
                   "variable{}: they began equal and differ after {} steps of "
                   "an optimizer each ({:.6g} and {:.6g}), so two models are "
                   "trained, each on its part of the data; apply the average "
                   "of the copies' gradients to both",
                   va.name, va.device->short_name(), vb.name,
                   vb.device->short_name(), where, kStepsToDrift, x, y),
       va.site});
}

void compare(const Copy& a, const Copy& b) {
  for (size_t i = 0; i < a.variables.size(); ++i) {
    const std::vector<double> x = values_of(a.variables[i]);
    const std::vector<double> y = values_of(b.variables[i]);
    for (size_t k = 0; k < x.size(); ++k) {
      const double size = std::max(std::abs(x[k]), std::abs(y[k]));
      if (!(std::abs(x[k] - y[k]) > kApart * std::max(size, 1e-6))) continue;
      return report_drift(a.variables[i], b.variables[i], x[k], y[k]);
    }
  }
}

void look(const OptimizerBase& optimizer, int step,
          const std::vector<Variable>& variables) {
  Copies& c = copies();
  std::lock_guard lock(c.mutex);
  if (step == 0) {
    Copy copy;
    if (describe(variables, &copy)) c.of[&optimizer] = std::move(copy);
    return;
  }
  const auto it = c.of.find(&optimizer);
  if (it == c.of.end()) return;
  Copy& mine = it->second;
  mine.step = step;
  if (step < kStepsToDrift) return;
  for (const auto& [other, copy] : c.of) {
    // The other one has done as many steps, and begins this one later.
    if (other != &optimizer && copy.device != mine.device &&
        copy.step == step - 1 && copy.lines == mine.lines &&
        copy.first == mine.first) {
      compare(mine, copy);
    }
  }
  c.of.erase(it);
}

}  // namespace

void lint_replicas(const OptimizerBase& optimizer, int step,
                   const std::vector<Variable>& variables) {
  if (DeviceManager::get().devices().size() < 2) return;
  try {
    look(optimizer, step, variables);
  } catch (const errors::Error&) {
    // Who trains hears of it from the update.
  }
}

void forget_replica(const OptimizerBase& optimizer) {
  Copies& c = copies();
  std::lock_guard lock(c.mutex);
  c.of.erase(&optimizer);
}

}  // namespace berth::keras
