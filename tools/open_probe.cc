// What tools/open_test calls through Python's ctypes: C functions on top of
// libberth. Errors are text, as no exception may pass through C.

#include <exception>

#include "berth/berth.h"

namespace {

thread_local std::string t_error;

}  // namespace

extern "C" const char* probe_error() { return t_error.c_str(); }

// Trains one step on y = 3 x, eagerly and in a function, on the calling thread;
// returns the gradient of the loss at w = 1 for x = 2, or NaN with an error.
extern "C" double probe_gradient() {
  try {
    berth::Variable w(berth::constant(1.f));
    const berth::Tensor x = berth::constant(2.f);
    auto loss = [&](const berth::Tensor& at) {
      return berth::math::square(at * w.value() - at * 3.0);
    };
    auto step = berth::function([&](const berth::Tensor& at) {
      berth::GradientTape tape;
      const berth::Tensor y = loss(at);
      return tape.gradient(y, w);
    });
    berth::GradientTape tape;
    const berth::Tensor y = loss(x);
    const double eager = tape.gradient(y, w).item<float>();
    const double traced = step(x).item<float>();
    if (eager == traced) return traced;
    t_error = "eagerly " + std::to_string(eager) + ", in a function " +
              std::to_string(traced);
  } catch (const std::exception& e) {
    t_error = e.what();
  }
  return __builtin_nan("");
}
