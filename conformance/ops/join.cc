// Several tensors into one and back.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

std::vector<Input> inputs_of(const std::vector<Shape>& shapes) {
  return {shapes.begin(), shapes.end()};
}

void add_concat(Cases& cases) {
  const auto concat = [&](const char* label, const std::vector<Shape>& shapes,
                          int64_t axis) -> Case& {
    return cases.add("ConcatV2", label, inputs_of(shapes))
        .types(kNumberTypes)
        .close_to(0, 0)
        .attr("axis", axis);
  };
  concat("rows", {{2, 3}, {1, 3}, {4, 3}}, 0);
  concat("columns", {{3, 2}, {3, 4}}, 1);
  concat("negative_axis", {{2, 2, 3}, {2, 2, 1}}, -1);
  concat("one", {{3, 2}}, 0);
  concat("with_empty", {{2, 3}, {0, 3}, {1, 3}}, 0);
  concat("of_empty", {{0, 2}, {0, 3}}, 1);
  cases
      .add("ConcatV2", "bool",
           {Input({3, 2}).boolean(), Input({3, 1}).boolean()})
      .types(kBoolType)
      .attr("axis", int64_t{1});
  concat("1m", {{512, 1024}, {512, 1024}}, 0)
      .types(dtype_bit(float32))
      .perf_only();
}

void add_concat_grad(Cases& cases) {
  const auto part = [&](const char* label, Shape dy,
                        const std::vector<Shape>& parts, int64_t axis,
                        int64_t index) {
    Case& c = cases.add("ConcatGrad", label, {Input(dy)})
                  .types(kNumberTypes)
                  .attr("axis", axis)
                  .attr("index", index);
    for (const Shape& s : parts) {
      c.input(Input(s).without_gradient("only its shape is read"));
    }
  };
  part("first_rows", {7, 3}, {{2, 3}, {1, 3}, {4, 3}}, 0, 0);
  part("last_rows", {7, 3}, {{2, 3}, {1, 3}, {4, 3}}, 0, 2);
  part("middle_columns", {3, 6}, {{3, 2}, {3, 3}, {3, 1}}, 1, 1);
  part("empty_part", {2, 3}, {{2, 3}, {0, 3}}, 0, 1);
}

void add_pack(Cases& cases) {
  const auto pack = [&](const char* label, Shape shape, size_t n,
                        int64_t axis) {
    cases.add("Pack", label, std::vector<Input>(n, Input(shape)))
        .types(kNumberTypes)
        .close_to(0, 0)
        .attr("axis", axis);
  };
  pack("first", {2, 3}, 3, 0);
  pack("middle", {2, 3}, 2, 1);
  pack("last", {2, 3}, 4, -1);
  pack("scalars", {}, 3, 0);
  pack("one", {2}, 1, 0);
  pack("empty", {0, 2}, 2, 1);
  const auto unpack = [&](const char* label, Shape shape, int64_t axis,
                          int64_t num) {
    cases.add("Unpack", label, {Input(shape)})
        .types(kNumberTypes)
        .close_to(0, 0)
        .attr("axis", axis)
        .attr("num", num);
  };
  unpack("first", {3, 2, 3}, 0, 3);
  unpack("middle", {2, 3, 4}, 1, 3);
  unpack("last", {2, 3, 4}, -1, 4);
  unpack("to_scalars", {3}, 0, 3);
  unpack("of_empty", {2, 0}, 0, 2);
}

}  // namespace

void add_join_cases(Cases& cases) {
  add_concat(cases);
  add_concat_grad(cases);
  add_pack(cases);
}

}  // namespace berth::conformance
