#include "conformance/strategy/linear.h"

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "conformance/strategy/row.h"

namespace berth::strategy_suite {

namespace {

Tensor as_floats(const std::vector<double>& v, const Shape& shape) {
  const std::vector<float> f(v.begin(), v.end());
  return constant(std::span<const float>(f), shape);
}

// What one optimizer does to one parameter.
class Update {
 public:
  explicit Update(std::string name, size_t n)
      : name_(std::move(name)), m_(n), v_(n) {}

  void apply(std::vector<double>* value, const std::vector<double>& grad) {
    ++step_;
    for (size_t i = 0; i < grad.size(); ++i) {
      double& x = (*value)[i];
      if (name_ == "sgd") {
        x -= 0.1 * grad[i];
      } else if (name_ == "momentum") {
        m_[i] = 0.9 * m_[i] - 0.05 * grad[i];
        x += m_[i];
      } else if (name_ == "adam") {
        m_[i] = 0.9 * m_[i] + 0.1 * grad[i];
        v_[i] = 0.999 * v_[i] + 0.001 * grad[i] * grad[i];
        const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, step_)) /
                            (1 - std::pow(0.9, step_));
        x -= rate * m_[i] / (std::sqrt(v_[i]) + 1e-7);
      } else {
        throw errors::NotFound("no rule for \"" + name_ + "\" by hand");
      }
    }
  }

 private:
  std::string name_;
  std::vector<double> m_, v_;
  int step_ = 0;
};

}  // namespace

Tensor LinearTask::tensor_x() const { return as_floats(x, {examples, kIn}); }
Tensor LinearTask::tensor_y() const { return as_floats(y, {examples, kOut}); }
Tensor LinearTask::tensor_w() const { return as_floats(w, {kIn, kOut}); }
Tensor LinearTask::tensor_b() const { return as_floats(b, {kOut}); }

LinearTask linear_task(int64_t examples) {
  auto wave = [](int64_t n, double scale) {
    std::vector<double> v(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      // As a float has it, so that both sides start from the same numbers.
      v[static_cast<size_t>(i)] = static_cast<float>(
          scale * (static_cast<double>((i * 37 + 11) % 101) - 50));
    }
    return v;
  };
  return {examples, wave(examples * kIn, 0.02), wave(examples * kOut, 0.03),
          wave(kIn * kOut, 0.01), wave(kOut, 0.005)};
}

LinearState train_by_hand(const LinearTask& task, const std::string& optimizer,
                          int steps) {
  LinearState s{task.w, task.b, {}};
  Update update_w(optimizer, s.w.size()), update_b(optimizer, s.b.size());
  for (int64_t first = 0; steps > 0; --steps) {
    if (first >= task.examples) first = 0;
    const int64_t last = std::min(first + kBatch, task.examples);
    const double scale = 1.0 / static_cast<double>((last - first) * kOut);
    std::vector<double> grad_w(s.w.size()), grad_b(s.b.size());
    double loss = 0;
    for (; first < last; ++first) {
      for (int64_t o = 0; o < kOut; ++o) {
        const double* row = &task.x[static_cast<size_t>(first * kIn)];
        double e = s.b[static_cast<size_t>(o)] -
                   task.y[static_cast<size_t>(first * kOut + o)];
        for (int64_t i = 0; i < kIn; ++i) {
          e += row[i] * s.w[static_cast<size_t>(i * kOut + o)];
        }
        loss += scale * e * e;
        grad_b[static_cast<size_t>(o)] += 2 * scale * e;
        for (int64_t i = 0; i < kIn; ++i) {
          grad_w[static_cast<size_t>(i * kOut + o)] += 2 * scale * e * row[i];
        }
      }
    }
    s.losses.push_back(loss);
    update_w.apply(&s.w, grad_w);
    update_b.apply(&s.b, grad_b);
  }
  return s;
}

}  // namespace berth::strategy_suite
