// Random numbers: the device must draw what the reference draws, and a part
// what the whole draws at its place.

#include <string_view>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

Case& add_draw(Cases& cases, const char* op, const char* label, Shape shape) {
  return cases.add(op, label, {})
      .attr("shape", shape)
      .attr("seed", int64_t{7})
      .attr("op_id", int64_t{3})
      .dtype_attr("dtype")
      .close_to(1e-6, 1e-6);
}

void add_generator(Cases& cases, const char* op) {
  add_draw(cases, op, "matrix", {5, 7});
  add_draw(cases, op, "vector", {131});
  add_draw(cases, op, "scalar", {});
  add_draw(cases, op, "empty", {0, 3});
  add_draw(cases, op, "1m", {1024, 1024}).types(dtype_bit(float32)).perf_only();
}

}  // namespace

void add_random_cases(Cases& cases) {
  for (const char* op :
       {"RandomStandardNormal", "TruncatedNormal", "RandomUniform"}) {
    add_generator(cases, op);
  }
  for (const char* op : {"RandomStandardNormal", "TruncatedNormal"}) {
    add_draw(cases, op, "moved", {5, 3}).attr("mean", 3.0).attr("stddev", 0.5);
  }
  add_draw(cases, "RandomUniform", "moved", {5, 3})
      .attr("minval", -2.0)
      .attr("maxval", 5.0);
  for (const Shape& shape : {Shape{5, 7}, Shape{}, Shape{0, 2}}) {
    add_draw(cases, "RandomUniformInt", (shape.str() + "_stateless").c_str(),
             shape)
        .types(kEveryInteger)
        .attr("stateless", true)
        .attr("maxval", int64_t{9});
    add_draw(cases, "RandomUniformInt", shape.str().c_str(), shape)
        .types(kEveryInteger)
        .attr("minval", int64_t{3})
        .attr("maxval", int64_t{40});
  }
  for (const char* op :
       {"RandomStandardNormal", "TruncatedNormal", "RandomUniform"}) {
    add_draw(cases, op, "stateless", {5, 7}).attr("stateless", true);
  }
  for (const char* op : {"RandomStandardNormal", "TruncatedNormal",
                         "RandomUniform", "RandomUniformInt"}) {
    const bool whole = op == std::string_view("RandomUniformInt");
    Case& drawn = cases.add(op, "key", {Input(Shape{2}).whole(0, 100, int64)})
                      .attr("shape", Shape{5, 7})
                      .dtype_attr("dtype");
    drawn.host_only = true;  // what reads the key
    if (whole) drawn.types(kIntegerTypes).attr("maxval", int64_t{9});
  }
  const auto classes = [&](const char* label, Shape logits, int64_t n) {
    cases.add("Multinomial", label, {Input(logits)})
        .attr("num_samples", n)
        .attr("seed", int64_t{7})
        .attr("op_id", int64_t{3});
  };
  classes("rows", {5, 4}, 7);
  classes("one_class", {3, 1}, 2);
  classes("no_samples", {3, 2}, 0);
  classes("no_rows", {0, 4}, 3);
}

}  // namespace berth::conformance
