// Cast, SelectV2, Complex: convert or move elements one by one.

#include <fmt/format.h>

#include "backends/gpu/element_kernel.h"

namespace berth::gpu {

namespace convert {

ElementKernel cast_kernel(DType from, DType to) {
  const std::string in(type_word(from)), out(type_word(to));
  ElementKernel k;
  k.name = "cast_" + out;
  k.in = {in};
  k.out = {out};
  k.body = fmt::format("  const {} y0 = {};\n", computed_in(out),
                       converted("x0", in, out));
  return k;
}

bool cast(Recipe& r) {
  const DType from = r.in_type(0), to = r.out_type(0);
  const bool f64 = r.features().has_f64;
  if (!f64 && (to == float64 || to == complex128)) return false;
  if (from == to) {
    r.copy(out(0), in(0),
           static_cast<size_t>(r.out_shape(0).num_elements()) * size_of(to));
    return true;
  }
  return launch_elements(r, {"math.cl"}, cast_kernel(from, to));
}

// `word` is the type that moves elements of that size.
ElementKernel select_kernel(const std::string& word) {
  ElementKernel k;
  k.name = "select_" + word;
  k.in = {"b8", word, word};
  k.out = {word};
  k.body = fmt::format("  const {} y0 = x0 != 0 ? x1 : x2;\n", word);
  return k;
}

std::string word_of_size(size_t bytes) {
  switch (bytes) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "i32";
    case 8:
      return "i64";
    default:
      return "w128";
  }
}

bool select(Recipe& r) {
  const std::string word = word_of_size(size_of(r.out_type(0)));
  return launch_elements(r, {}, select_kernel(word));
}

bool complex(Recipe& r) {
  const bool wide = r.in_type(0) == float64;
  const char* part = wide ? "f64" : "f32";
  const char* whole = wide ? "c128" : "c64";
  ElementKernel k;
  k.name = "complex";
  k.in = {part, part};
  k.out = {whole};
  k.body = fmt::format("  const {0} y0 = {0}_make(x0, x1);\n", whole);
  return launch_elements(r, {}, k);
}

}  // namespace convert

void add_casts(Kernels& k) {
  k.add("Cast", kEveryType, &convert::cast, true);
  // The condition's dtype selects the kernel.
  k.add("SelectV2", kBoolType, &convert::select, true);
  k.add("Complex", kFloatingTypes, &convert::complex);
}

}  // namespace berth::gpu
