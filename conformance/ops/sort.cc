// Order and what depends on it; results of max_size rows.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

void add_orders(Cases& cases) {
  struct Form {
    const char* label;
    Shape shape;
    int64_t k;
  };
  for (const Form& f : {Form{"vector", {9}, 4}, Form{"rows", {4, 6}, 2},
                        Form{"all", {3, 5}, 5}, Form{"deep", {2, 3, 4}, 1},
                        Form{"none", {3, 4}, 0}, Form{"empty", {0, 4}, 2}}) {
    cases.add("TopKV2", f.label, {Input(f.shape).distinct()})
        .types(kNumberTypes)
        .close_to(0, 0)
        .attr("k", f.k)
        .gradient_through(1);
    for (const bool down : {false, true}) {
      cases
          .add("ArgSort", std::string(f.label) + (down ? "_down" : "_up"),
               {Input(f.shape).whole(0, 3)})
          .types(kNumberTypes)
          .attr("descending", down);
      cases
          .add("Sort", std::string(f.label) + (down ? "_down" : "_up"),
               {Input(f.shape).distinct()})
          .types(kNumberTypes)
          .close_to(0, 0)
          .attr("descending", down);
    }
  }
  cases.add("TopKV2", "ties", {Input({3, 8}).whole(0, 2)})
      .types(kNumberTypes)
      .close_to(0, 0)
      .attr("k", int64_t{5})
      .skip_gradients("not differentiable at ties");
  cases.add("TopKV2", "special", {Input({26}).special()})
      .close_to(0, 0)
      .attr("k", int64_t{26});
  cases.add("ArgSort", "special", {Input({26}).special()});
  cases.add("ArgSort", "special_down", {Input({26}).special()})
      .attr("descending", true);
  for (const bool down : {false, true}) {
    cases
        .add("Sort", down ? "ties_down" : "ties_up",
             {Input({3, 200}).whole(0, 9)})
        .types(kNumberTypes)
        .close_to(0, 0)
        .attr("descending", down)
        .skip_gradients("not differentiable at ties");
    cases
        .add("Sort", down ? "special_down" : "special_up",
             {Input({26}).special()})
        .close_to(0, 0)
        .attr("descending", down);
  }
}

void add_search(Cases& cases) {
  for (const char* op : {"LowerBound", "UpperBound"}) {
    const auto search = [&](const char* label, Shape sorted, Shape values) {
      std::vector<double> ascending;
      for (int64_t i = 0; i < sorted[sorted.rank() - 1]; ++i) {
        ascending.push_back(static_cast<double>(i / 2));
      }
      if (ascending.empty()) ascending.push_back(0);
      cases
          .add(op, label,
               {Input(sorted).of(ascending), Input(values).whole(0, 4)})
          .types(kNumberTypes);
    };
    search("vector", {7}, {9});
    search("rows", {3, 6}, {3, 4});
    search("in_nothing", {2, 0}, {2, 3});
    search("nothing", {2, 5}, {2, 0});
    cases
        .add(op, "special",
             {Input({4}).of({-1, 0, 0, 2}), Input({13}).special()})
        .attr("out_type", int64);
  }
  const auto in_top = [&](const char* label, Shape predictions, double last,
                          int64_t k) {
    cases
        .add("InTopKV2", label,
             {Input(predictions).whole(0, 5),
              Input({predictions[0]}).whole(-1, last, int32)})
        .types(kFloatingTypes)
        .attr("k", k);
  };
  in_top("some", {9, 5}, 5, 2);
  in_top("all", {4, 3}, 2, 3);
  in_top("none", {4, 3}, 2, 0);
  in_top("empty", {0, 3}, 2, 1);
  cases
      .add("InTopKV2", "special",
           {Input({6, 13}).special(), Input({6}).whole(0, 12, int64)})
      .attr("k", int64_t{3});
  for (const int64_t n : {0, 1, 7}) {
    std::vector<double> order(static_cast<size_t>(n), 0);
    for (int64_t i = 0; i < n; ++i) {
      order[static_cast<size_t>(i)] = static_cast<double>((3 * i + 1) % n);
    }
    if (order.empty()) order.push_back(0);
    cases.add("InvertPermutation", std::to_string(n), {Input({n}).of(order)})
        .types(kIndexTypes);
  }
}

void add_dynamic(Cases& cases) {
  const auto where = [&](const char* label, Shape shape, int64_t max_size) {
    cases.add("Where", label, {Input(shape).boolean()})
        .types(kBoolType)
        .attr("max_size", max_size);
    cases
        .add("Where", std::string(label) + "_numbers",
             {Input(shape).whole(0, 1)})
        .types(kNumberTypes)
        .attr("max_size", max_size);
  };
  where("vector", {9}, -1);
  where("matrix", {3, 5}, -1);
  where("at_most", {3, 5}, 20);
  where("scalar", {}, -1);
  where("empty", {0, 3}, -1);
  where("empty_with_room", {0, 3}, 2);
  for (const char* op : {"Unique", "UniqueWithCounts"}) {
    const auto unique = [&](const char* label, Shape shape, int64_t max_size,
                            DType type) {
      cases.add(op, label, {Input(shape).whole(0, 4)})
          .types(kNumberTypes)
          .attr("max_size", max_size)
          .attr("out_idx", type);
    };
    unique("some", {13}, -1, int32);
    unique("at_most", {13}, 6, int64);
    unique("one", {1}, -1, int32);
    unique("empty", {0}, -1, int64);
    cases.add(op, "special", {Input({26}).special()});
  }
}

}  // namespace

void add_sort_cases(Cases& cases) {
  add_orders(cases);
  add_search(cases);
  add_dynamic(cases);
}

}  // namespace berth::conformance
