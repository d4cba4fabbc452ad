// Parts of a tensor.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

using Ints = std::vector<int64_t>;

void add_slice(Cases& cases) {
  const auto slice = [&](const char* label, Shape shape, const Ints& begin,
                         const Ints& size) -> Case& {
    return cases.add("Slice", label, {Input(shape)})
        .types(kNumberTypes)
        .close_to(0, 0)
        .attr("begin", begin)
        .attr("size", size);
  };
  slice("corner", {4, 5}, {0, 0}, {2, 3});
  slice("inside", {4, 5}, {1, 2}, {2, 2});
  slice("to_the_end", {4, 5}, {2, 1}, {-1, -1});
  slice("whole_rows", {6, 3}, {2, 0}, {3, -1});
  slice("whole_columns", {5, 4}, {0, 1}, {-1, 2});
  slice("nothing", {4, 5}, {4, 0}, {0, 5});
  slice("scalar", {}, {}, {});
  slice("1m", {1024, 2048}, {0, 512}, {-1, 1024})
      .types(dtype_bit(float32))
      .perf_only();
}

struct Strided {
  const char* label;
  Shape full;
  Shape part;  // what the slice has
  Ints begin, end, strides;
  int64_t begin_mask = 0, end_mask = 0, shrink = 0;
};

Case& with(Case& c, const Strided& s) {
  c.types(kNumberTypes)
      .attr("begin", s.begin)
      .attr("end", s.end)
      .attr("strides", s.strides);
  if (s.begin_mask) c.attr("begin_mask", s.begin_mask);
  if (s.end_mask) c.attr("end_mask", s.end_mask);
  if (s.shrink) c.attr("shrink_axis_mask", s.shrink);
  return c;
}

void add_strided(Cases& cases, const Strided& s) {
  with(cases.add("StridedSlice", s.label, {Input(s.full)}), s).close_to(0, 0);
  with(cases.add("StridedSliceGrad", s.label, {Input(s.part)}), s)
      .attr("shape", s.full);
  with(cases.add("StridedSliceGradLike", s.label,
                 {Input(s.part),
                  Input(s.full).as(int32).without_gradient("only its shape")}),
       s);
}

}  // namespace

void add_slice_cases(Cases& cases) {
  add_slice(cases);
  add_strided(cases, {"every_second", {7}, {4}, {0}, {7}, {2}});
  add_strided(cases, {"from_second", {7}, {2}, {1}, {6}, {3}});
  add_strided(cases, {"reversed", {5}, {5}, {0}, {0}, {-1}, 1, 1});
  add_strided(cases, {"negative_places", {6}, {3}, {-4}, {-1}, {1}});
  add_strided(cases, {"backwards_by_2", {7}, {3}, {5}, {0}, {-2}});
  add_strided(cases, {"rows", {5, 3}, {2, 3}, {1}, {3}, {1}});
  add_strided(cases, {"block", {4, 5}, {2, 2}, {1, 0}, {3, 4}, {1, 2}});
  add_strided(cases, {"columns", {4, 5}, {4, 3}, {0, 1}, {0, 4}, {1, 1}, 1, 1});
  add_strided(cases, {"index", {4, 5}, {5}, {2}, {0}, {1}, 0, 0, 1});
  add_strided(cases,
              {"index_last", {4, 5}, {4}, {0, -1}, {0, 0}, {1, 1}, 1, 1, 2});
  add_strided(cases, {"nothing", {4, 3}, {0, 3}, {3}, {1}, {1}});
  add_strided(cases, {"no_subscripts", {2, 3}, {2, 3}, {}, {}, {}});
}

}  // namespace berth::conformance
