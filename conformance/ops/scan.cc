// Running sums and products along an axis.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

Case& add(Cases& cases, const char* op, const char* label, Input x,
          int64_t axis, bool exclusive, bool reverse) {
  return cases.add(op, label, {std::move(x)})
      .attr("axis", axis)
      .attr("exclusive", exclusive)
      .attr("reverse", reverse);
}

void add_scan(Cases& cases, const char* op, DTypeSet types) {
  const auto one = [&](const char* label, Input x, int64_t axis,
                       bool exclusive = false, bool reverse = false) -> Case& {
    Case& c = add(cases, op, label, std::move(x), axis, exclusive, reverse);
    if (exclusive && std::string(op) == "CumulativeLogsumexp") {
      c.skip_gradients("-inf has no differences; see scan_test.cc");
    }
    return c.types(types);
  };
  one("rows", {4, 5}, 0);
  one("columns", {4, 5}, 1);
  one("middle", {2, 3, 4}, 1);
  one("last", {2, 3, 4}, -1, false, true);
  one("exclusive", {4, 5}, 0, true);
  one("reverse", {4, 5}, 1, false, true);
  one("exclusive_reverse", {3, 5}, -1, true, true);
  one("vector", {7}, 0);
  one("one_element", {2, 1}, 1);
  one("empty", {0, 3}, 1);
  one("empty_axis", {3, 0}, 1, true);
  one("special", Input({13, 2}).special(), 1).types(kFloatingTypes);
  one("special_reverse", Input({2, 13}).special(), 0, true, true)
      .types(kFloatingTypes);
  one("1m", {1024, 1024}, 1).types(dtype_bit(float32)).perf_only();
}

// Zeros are factors like any other, to all orders.
void add_zeros(Cases& cases) {
  const Input some = Input({8}).of({1.5, -2, 0, 0.5, 3, 0, -1, 2});
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      const std::string label = std::string("zeros") +
                                (exclusive ? "_exclusive" : "") +
                                (reverse ? "_reverse" : "");
      add(cases, "Cumprod", label.c_str(), some, 0, exclusive, reverse);
    }
  }
}

void add_recurrence(Cases& cases) {
  const auto one = [&](const std::string& label, Shape shape, int64_t axis,
                       const char* flag, bool reverse) -> Case& {
    Case& c = cases.add("LinearRecurrence", label,
                        {Input(shape).uniform(-1.5, 1.5), Input(shape)});
    c.attr("axis", axis).attr("reverse", reverse);
    if (*flag) c.attr(flag, true);
    return c;
  };
  for (const char* flag : {"", "previous", "exclusive"}) {
    const std::string name = *flag ? flag : "own";
    one(name, {3, 5}, 1, flag, false);
    one(name + "_reverse", {4, 3}, 0, flag, true);
    one(name + "_middle", {2, 4, 3}, 1, flag, false);
    one(name + "_one", {1}, 0, flag, false);
    one(name + "_empty", {2, 0}, 1, flag, true);
  }
  const auto of_segments = [&](const std::string& label, Shape shape,
                               int64_t axis, std::vector<double> ids,
                               const char* flag, bool reverse) {
    const Shape at{static_cast<int64_t>(ids.size())};
    Case& c = cases.add("SegmentRecurrence", label,
                        {Input(shape).uniform(-1.5, 1.5), Input(shape),
                         Input(at).of(std::move(ids)).as(int32)});
    c.attr("axis", axis).attr("reverse", reverse);
    if (*flag) c.attr(flag, true);
  };
  for (const char* flag : {"", "previous", "exclusive"}) {
    const std::string name = *flag ? flag : "own";
    of_segments(name, {5, 3}, 0, {-1, -1, 2, 2, 2}, flag, false);
    of_segments(name + "_reverse", {5, 3}, 0, {0, 1, 1, 1, 4}, flag, true);
    of_segments(name + "_middle", {2, 4, 3}, 1, {3, 3, 0, 3}, flag, false);
    of_segments(name + "_empty", {2, 0}, 1, {}, flag, true);
  }
  cases.add("LinearRecurrence", "special",
            {Input({13, 13}).special(), Input({13, 13}).special()});
}

}  // namespace

void add_scan_cases(Cases& cases) {
  add_scan(cases, "Cumsum", kNumberTypes);
  add_scan(cases, "Cumprod", kNumberTypes);
  add_scan(cases, "CumulativeLogsumexp", kFloatingTypes);
  add_zeros(cases);
  add_recurrence(cases);
  add(cases, "CumulativeLogsumexp", "far_apart",
      Input({6}).of({-300, 0, 300, 299, -300, 301}), 0, false, false);
}

}  // namespace berth::conformance
