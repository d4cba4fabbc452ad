// Tensors made from nothing, copies, AddN.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backends/gpu/element_kernel.h"
#include "tensor/visit_dtype.h"

namespace berth::gpu {

namespace constant_ops {

int64_t size(Recipe& r) { return r.out_shape(0).num_elements(); }
size_t bytes(Recipe& r) {
  return static_cast<size_t>(size(r)) * size_of(r.out_type(0));
}

bool set_all(Recipe& r, double number) {
  unsigned char element[16] = {};
  const DType type = r.out_type(0);
  visit_dtype(type, "fill", [&](auto t) {
    const auto v = convert_element<decltype(t)>(number);
    std::memcpy(element, &v, sizeof v);
  });
  const size_t width = size_of(type);
  if (std::all_of(element, element + width,
                  [&](unsigned char b) { return b == element[0]; })) {
    r.fill(out(0), element[0], bytes(r));
    return true;
  }
  uint64_t low = 0, high = 0;
  std::memcpy(&low, element, 8);
  std::memcpy(&high, element + 8, 8);
  const KernelSource source{.files = {"fill.cl"}};
  const std::string kernel = fmt::format("fill_{}", width);
  if (width == 16) {
    const int64_t words = 2 * size(r);
    r.flat(source, kernel.c_str(), words,
           {out(0), value(words), value(low), value(high)});
  } else {
    r.flat(source, kernel.c_str(), size(r),
           {out(0), value(size(r)), value(low)});
  }
  return true;
}

bool fill(Recipe& r) { return set_all(r, r.args().attr<double>("value")); }
bool zeros(Recipe& r) {
  r.fill(out(0), 0, bytes(r));
  return true;
}
bool ones(Recipe& r) { return set_all(r, 1); }
bool copy(Recipe& r) {
  r.copy(out(0), in(0), bytes(r));
  return true;
}

// Returns the type of sums.
const char* wide_word(Recipe& r, DType type) {
  if (is_integer(type)) return "u64";
  return r.features().has_f64 ? "f64" : "f32";
}

KernelSource source_for(Recipe& r, DType type) {
  return {.files = {"generate.cl"},
          .types = {{"T", type}},
          .defines = {{"WIDE", wide_word(r, type)}}};
}

bool range(Recipe& r) {
  r.flat(source_for(r, r.out_type(0)), "range", size(r),
         {out(0), value(size(r)), value(r.args().attr<int64_t>("start")),
          value(r.args().attr<int64_t>("delta")), slice_origin()});
  return true;
}

// Returns a number as the kernels' REAL.
Arg real(Recipe& r, const char* attr) {
  const double x = r.args().attr<double>(attr);
  return r.features().has_f64 ? value(x) : value(static_cast<float>(x));
}

bool linspace(Recipe& r) {
  r.flat(source_for(r, r.out_type(0)), "linspace", size(r),
         {out(0), value(size(r)), real(r, "start"), real(r, "stop"),
          value(r.args().attr<int64_t>("num") - 1), slice_origin()});
  return true;
}

bool float_range(Recipe& r) {
  r.flat(source_for(r, r.out_type(0)), "float_range", size(r),
         {out(0), value(size(r)), real(r, "start"), real(r, "delta"),
          slice_origin()});
  return true;
}

constexpr int kAtOnce = 8;

ElementKernel add_kernel(const std::string& word, const char* wide, int count) {
  ElementKernel k;
  k.name = fmt::format("add_{}", count);
  k.out = {word};
  std::string sum = fmt::format("({})0", wide);
  for (int i = 0; i < count; ++i) {
    k.in.push_back(word);
    sum += fmt::format(" + ({})x{}", wide, i);
  }
  k.body =
      fmt::format("  const {0} y0 = ({0})({1});\n", computed_in(word), sum);
  return k;
}

// Adds more arrays than one launch takes; sums wait in scratch.
bool add_many(Recipe& r) {
  const int64_t n = size(r);
  const KernelSource source = source_for(r, r.in_type(0));
  const int inputs = r.num_in();
  const Arg sums = r.scratch(static_cast<size_t>(n) * 8);  // at most
  for (int first = 0; first < inputs; first += kAtOnce) {
    const int count = std::min(kAtOnce, inputs - first);
    Arg x[kAtOnce];
    for (int i = 0; i < count; ++i) x[i] = in(first + i);
    const bool last = first + count == inputs;
    r.flat(source, "add_n", n,
           {x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], sums, out(0),
            value(n), value(int32_t{count}), value(int32_t{first == 0}),
            value(int32_t{last})});
  }
  return true;
}

bool add_n(Recipe& r) {
  if (r.num_in() > kAtOnce) return add_many(r);
  const DType type = r.in_type(0);
  const std::string word(type_word(type));
  const char* wide = wide_word(r, type);
  return launch_elements(r, {}, add_kernel(word, wide, r.num_in()));
}

}  // namespace constant_ops

void add_constant_ops(Kernels& k) {
  k.add("Fill", kEveryType, &constant_ops::fill);
  k.add("ZerosLike", kEveryType, &constant_ops::zeros);
  k.add("OnesLike", kEveryType, &constant_ops::ones);
  k.add("DeepCopy", kEveryType, &constant_ops::copy);
  k.add("Range", kRealNumbers, &constant_ops::range);
  k.add("LinSpace", kRealNumbers, &constant_ops::linspace);
  k.add("FloatRange", kRealNumbers, &constant_ops::float_range);
  k.add("AddN", kRealNumbers, &constant_ops::add_n, true);
}

}  // namespace berth::gpu
