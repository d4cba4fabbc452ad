#include "backends/gpu/product.h"

#include <algorithm>

#include "backends/gpu/rows.h"
#include "op/op_def.h"

namespace berth::gpu {

namespace product {

// TILE of kernels/product_tiles.cl.
constexpr int64_t kTile = 64;
constexpr uint32_t kTileItems = 256;
constexpr int64_t kMostParts = 64;
// Below these, a product of one batch does not pay for tiles.
constexpr int64_t kFewProducts = 4096;
constexpr int64_t kNarrow = 4;

// The type of sums.
struct Words {
  const char *acc, *madd;
  int64_t acc_bytes;
};

Words words_of(DType dtype) {
  switch (dtype) {
    case float64:
      return {"f64", "F64_MADD", 8};
    case complex64:
      return {"c64", "COMPLEX_MADD", 8};
    case complex128:
      return {"c128", "COMPLEX_MADD", 16};
    case int64:
    case uint64:
      return {"u64", "WHOLE_MADD", 8};
    case int32:
    case int8:
    case uint8:
    case int16:
    case uint16:
    case uint32:
      return {"u32", "WHOLE_MADD", 4};
    default:
      return {"f32", "F32_MADD", 4};
  }
}

// The parts of the inner dimension; their sums are added.
struct Parts {
  int64_t count = 1;
  int64_t chunk = 0;  // inner elements of each part but the last
};

Parts parts_of(int64_t k, int64_t wanted) {
  Parts p;
  p.chunk = ceil_div(k, std::clamp<int64_t>(wanted, 1, kMostParts));
  p.count = ceil_div(k, p.chunk);
  return p;
}

// Appends the launches of one product.
class Writer {
 public:
  Writer(Recipe& r, const ProductCall& call)
      : r_(r), call_(call), f_(call.fields), words_(words_of(call.dtype)) {}

  void write_end() {
    std::vector<Arg> args = {call_.c};
    add_end(args);
    const int64_t elements = f_.batches * f_.m * f_.n;
    args.insert(args.end(), {value(f_.n), value(elements)});
    r_.flat(source(), "product_end", elements, args);
  }

  void write() {
    const bool small =
        f_.n < kNarrow || f_.m < kNarrow || f_.m * f_.n * f_.k < kFewProducts;
    return small ? plain() : tiled();
  }

 private:
  KernelSource source() const {
    KernelSource s;
    s.files = {"index.cl", "product.cl", call_.file, "product_kernels.cl",
               "product_tiles.cl"};
    s.types = {{"T", call_.dtype}};
    if (!call_.end.is_nothing()) s.files.insert(s.files.begin() + 1, "math.cl");
    s.defines = call_.defines;
    s.defines.insert(s.defines.end(),
                     {{"ACC", words_.acc}, {"ACC_MADD", words_.madd}});
    define_end(s);
    return s;
  }

  void define_end(KernelSource& s) const {
    const ProductEnd& end = call_.end;
    if (end.is_nothing()) return;
    const auto flag = [](bool is) { return is ? "1" : "0"; };
    const bool slope = end.activation == ProductActivation::kGeluTanhSlope;
    s.defines.insert(s.defines.end(), {{"PRODUCT_END", "1"},
                                       {"END_BIAS", flag(end.has_bias)},
                                       {"END_KEEPS", flag(end.keeps)},
                                       {"END_SLOPE", flag(slope)}});
    if (end.activation == ProductActivation::kNone) return;
    const char* name = slope ? "_GELU_TANH_SLOPE"
                       : end.activation == ProductActivation::kRelu
                           ? "_RELU"
                           : "_GELU_TANH";
    s.defines.push_back({"END_FUNCTION", std::string(words_.acc) + name});
  }

  // Adds the arguments that kernels which store c take last.
  void add_end(std::vector<Arg>& args) const {
    if (call_.end.is_nothing()) return;
    args.insert(args.end(), {call_.end.bias, call_.end.aux});
  }
  std::vector<Arg> memory(std::initializer_list<Arg> first,
                          std::initializer_list<Arg> more) const {
    std::vector<Arg> args = first;
    add_end(args);
    args.insert(args.end(), more);
    return args;
  }

  // Returns where parts are stored; no buffer when there is only one.
  Arg sums(const Parts& parts) {
    if (parts.count == 1) return no_buffer();
    return r_.scratch(static_cast<size_t>(parts.count * f_.batches * f_.m *
                                          f_.n * words_.acc_bytes));
  }
  void add_parts(const Parts& parts, const Arg& sums) {
    if (parts.count == 1) return;
    r_.flat(source(), "product_sum", f_.batches * f_.m * f_.n,
            memory({sums, call_.c}, {call_.problem, value(parts.count)}));
  }

  // One item per element of c, and per part.
  void plain() {
    const int64_t items = f_.m * f_.batches * f_.n;
    const Parts parts =
        parts_of(f_.k, std::min(int64_t{32768} / items, f_.k / 256));
    const Arg to = sums(parts);
    r_.flat(source(), "product_plain", items * parts.count,
            memory({call_.a, call_.b, call_.c, to},
                   {call_.problem, value(parts.count), value(parts.chunk)}));
    add_parts(parts, to);
  }

  void tiled() {
    const int64_t tiles =
        ceil_div(f_.m, kTile) * ceil_div(f_.n, kTile) * f_.batches;
    const int64_t wanted =
        tiles < 128 ? std::min(f_.k / 256, ceil_div(256, tiles)) : 1;
    const Parts parts = parts_of(f_.k, wanted);
    const Arg to = sums(parts);
    const Grid grid{{static_cast<uint32_t>(tiles * parts.count), 1, 1},
                    kTileItems};
    r_.launch(source(), "product_tiles", grid,
              memory({call_.a, call_.b, call_.c, to},
                     {call_.problem, value(parts.count), value(parts.chunk)}));
    add_parts(parts, to);
  }

  Recipe& r_;
  const ProductCall& call_;
  const ProductFields& f_;
  const Words words_;
};

}  // namespace product

void append_product(Recipe& r, const ProductCall& call) {
  const ProductFields& f = call.fields;
  const int64_t elements = f.batches * f.m * f.n;
  if (elements == 0) return;
  if (f.k == 0) {
    return r.fill(call.c, 0,
                  static_cast<size_t>(elements) * size_of(call.dtype));
  }
  product::Writer(r, call).write();
}

void append_product_end(Recipe& r, const ProductCall& call) {
  if (!call.end.is_nothing()) product::Writer(r, call).write_end();
}

}  // namespace berth::gpu
