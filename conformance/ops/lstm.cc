// LSTM over a sequence.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

constexpr const char* kOnce = "LSTM has no second derivatives";

Case& forward(Cases& cases, std::string label, int64_t n, int64_t t, int64_t u,
              bool masked) {
  std::vector<Input> in{Input({n, t, 4 * u}), Input({u, 4 * u}).uniform(-1, 1),
                        Input({n, u}), Input({n, u})};
  if (masked) {
    in.push_back(Input({n, t}).whole(0, 1).without_gradient("0 or 1"));
  }
  return cases.add("LSTM", label, in)
      .close_to(1e-4, 1e-5)
      .gradient_through(2)
      .skip(Mode::kGrad2, kOnce);
}

Case& backward(Cases& cases, std::string label, int64_t n, int64_t t, int64_t u,
               bool masked) {
  std::vector<Input> in{Input({n, t, u}),
                        Input({n, u}),
                        Input({u, 4 * u}).uniform(-1, 1),
                        Input({n, u}),
                        Input({n, t, 4 * u}).uniform(0.05, 0.95),
                        Input({n, t, u})};
  if (masked) in.push_back(Input({n, t}).whole(0, 1));
  return cases.add("LSTMGrad", label, in)
      .close_to(1e-4, 1e-4)
      .skip_gradients(kOnce);
}

}  // namespace

void add_lstm_cases(Cases& cases) {
  for (const bool masked : {false, true}) {
    const std::string end = masked ? "_masked" : "";
    for (const auto& [label, n, t, u] :
         {std::tuple<std::string, int64_t, int64_t, int64_t>{"small", 3, 4, 2},
          {"one_step", 2, 1, 3},
          {"one_example", 1, 3, 5}}) {
      forward(cases, label + end, n, t, u, masked);
      backward(cases, label + end, n, t, u, masked);
    }
    // Several blocks of units, the last not whole.
    forward(cases, "wide" + end, 5, 3, 37, masked)
        .skip_gradients("those of small sizes say as much");
    backward(cases, "wide" + end, 5, 3, 37, masked);
    forward(cases, "no_examples" + end, 0, 3, 2, masked);
    backward(cases, "no_examples" + end, 0, 3, 2, masked);
    forward(cases, "no_steps" + end, 2, 0, 3, masked);
    backward(cases, "no_steps" + end, 2, 0, 3, masked);
  }
  const DTypeSet single = dtype_bit(float32);
  forward(cases, "32x100x512", 32, 100, 512, false).types(single).perf_only();
  backward(cases, "32x100x512", 32, 100, 512, false).types(single).perf_only();
}

}  // namespace berth::conformance
