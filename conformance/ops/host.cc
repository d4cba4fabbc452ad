// Ops that only host devices have: Fourier transforms, paths of labels, boxes,
// bytes, draws from distributions.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

void add_fourier(Cases& cases) {
  // Powers, products, primes, and primes that need a convolution.
  for (const int64_t n : {1, 2, 3, 8, 12, 31, 67, 134}) {
    for (const bool inverse : {false, true}) {
      const Shape shape = n < 10 ? Shape{2, 3, n} : Shape{2, n};
      cases
          .add("FFT", shape.str() + (inverse ? "_inverse" : ""), {Input(shape)})
          .types(kComplexTypes)
          .attr("inverse", inverse)
          .attr("normalize", inverse)
          .close_to(1e-5, 1e-5);
    }
  }
  cases.add("FFT", "empty", {Input({0, 4})}).types(kComplexTypes);
  cases.add("FFT", "no_length", {Input({2, 0})}).types(kComplexTypes);
}

void add_ctc(Cases& cases) {
  const auto add = [&](const char* label, int64_t time, int64_t labels,
                       std::vector<double> ids, int64_t blank) {
    cases
        .add(
            "CTCLoss", label,
            {Input({time, 2, 4}),
             Input({2, labels}).of(std::move(ids)).as(int64),
             Input({2})
                 .of({static_cast<double>(labels),
                      static_cast<double>(labels > 0 ? 1 : 0)})
                 .as(int64),
             Input({2})
                 .of({static_cast<double>(time), static_cast<double>(time - 1)})
                 .as(int64)})
        .attr("blank_index", blank)
        .gradient_through(1)
        .skip(Mode::kGrad2, "the gradient is an output of the kernel")
        .close_to(1e-4, 1e-5);
  };
  add("repeats", 7, 3, {1, 1, 2, 3, 2, 1}, 0);
  add("last_blank", 5, 2, {0, 2, 1, 1}, -1);
  add("no_labels", 3, 0, {0}, 0);
  for (const int64_t paths : {1, 3}) {
    cases
        .add("CTCBeamSearchDecoder", std::to_string(paths),
             {Input({6, 2, 4}), Input({2}).of({6, 4}).as(int64)})
        .attr("beam_width", int64_t{8})
        .attr("top_paths", paths)
        .close_to(1e-4, 1e-5);
  }
}

void add_boxes(Cases& cases) {
  cases
      .add("NonMaxSuppression", "boxes",
           {Input({4, 4}).of(
                {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3, 1, 1, 0, 0}),
            Input({4}).of({0.5, 0.75, 0.25, 0.75})})
      .attr("max_output_size", int64_t{3});
  cases.add("NonMaxSuppression", "none", {Input({0, 4}), Input({0})})
      .attr("max_output_size", int64_t{2});
  const auto bits = [&](const char* label, Shape shape, DType from, DType to) {
    cases.add("Bitcast", label, {Input(shape).whole(0, 50, from)})
        .types(dtype_bit(from))
        .attr("type", to)
        .close_to(0, 0);
  };
  bits("same", {2, 3}, int32, uint32);
  bits("smaller", {3}, int32, uint8);
  bits("larger", {2, 2}, int32, int64);
  bits("empty", {0, 2}, int32, int64);
}

void add_distributions(Cases& cases) {
  const auto add = [&](const char* op, const char* label,
                       std::vector<Input> inputs) -> Case& {
    return cases.add(op, label, std::move(inputs))
        .attr("seed", int64_t{7})
        .attr("op_id", int64_t{3});
  };
  for (const Shape& shape : {Shape{6, 5}, Shape{}, Shape{0, 2}}) {
    add("RandomGamma", shape.str().c_str(), {Input(shape).uniform(0.1, 5)});
    add("RandomPoisson", shape.str().c_str(), {Input(shape).uniform(0, 30)});
    add("RandomBinomial", shape.str().c_str(),
        {Input(shape).whole(0, 90), Input(shape).uniform(0, 1)});
  }
  const Input key = Input(Shape{2}).whole(0, 100, int64);
  add("RandomGamma", "key", {Input({9}).uniform(0.1, 5), key}).host_only = true;
  add("RandomPoisson", "key", {Input({9}).uniform(0, 30), key}).host_only =
      true;
  add("RandomBinomial", "key",
      {Input({9}).whole(0, 90), Input({9}).uniform(0, 1), key})
      .host_only = true;
  add("RandomPoisson", "stateless", {Input({9}).uniform(0, 30)})
      .attr("stateless", true)
      .attr("dtype", int64);
}

}  // namespace

void add_host_cases(Cases& cases) {
  add_fourier(cases);
  add_ctc(cases);
  add_boxes(cases);
  add_distributions(cases);
}

}  // namespace berth::conformance
