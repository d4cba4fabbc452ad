#include "backends/gpu/product.h"

#include <algorithm>

#include "backends/gpu/rows.h"
#include "op/op_def.h"

namespace berth::gpu {

namespace product {

// PANEL_ROWS, PACK_A, PACK_B of kernels/product_panels.cl, TILE of
// kernels/product_tiles.cl.
constexpr int64_t kPanelRows = 6, kPackA = 256, kPackB = 32;
constexpr int64_t kTile = 64;
constexpr uint32_t kTileItems = 256;
// Packed elements kept at a time: they stay in caches.
constexpr int64_t kPackedA = int64_t{4} << 20, kPackedB = int64_t{16} << 20;
// Inner elements of a panel; a column of panels stays in a cache.
constexpr int64_t kLongestPanel = 8192;
constexpr int64_t kMostParts = 64;
// Below these, a product of one batch does not pay for panels or tiles.
constexpr int64_t kFewProducts = 4096;
constexpr int64_t kNarrow = 4;
constexpr int64_t kFewRows = 12;

int64_t round_up(int64_t a, int64_t to) { return ceil_div(a, to) * to; }

// The type of sums, and its vectors.
struct Words {
  const char *acc, *scalar, *madd, *vector_madd, *vector;
  int64_t lanes, acc_bytes, scalar_bytes;
};

Words words_of(DType dtype) {
  switch (dtype) {
    case float64:
      return {"f64", "f64", "F64_MADD", "fma", "double8", 8, 8, 8};
    case complex64:
      return {"c64", "f32", "COMPLEX_MADD", "fma", "float16", 16, 8, 4};
    case complex128:
      return {"c128", "f64", "COMPLEX_MADD", "fma", "double8", 8, 16, 8};
    case int64:
      return {"u64", "u64", "WHOLE_MADD", "WHOLE_MADD", "ulong8", 8, 8, 8};
    case int32:
    case int8:
    case uint8:
      return {"u32", "u32", "WHOLE_MADD", "WHOLE_MADD", "uint16", 16, 4, 4};
    default:
      return {"f32", "f32", "F32_MADD", "fma", "float16", 16, 4, 4};
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
      : r_(r),
        call_(call),
        f_(call.fields),
        words_(words_of(call.dtype)),
        tiles_(r.features().tiles) {}

  void write_end() {
    std::vector<Arg> args = {call_.c};
    add_end(args);
    const int64_t elements = f_.batches * f_.m * f_.n;
    args.insert(args.end(), {value(f_.n), value(elements)});
    r_.flat(source(), "product_end", elements, args);
  }

  void write() {
    const bool small = f_.n < kNarrow || f_.m * f_.n * f_.k < kFewProducts ||
                       (tiles_ && f_.m < kNarrow);
    if (small) return plain();
    return tiles_ ? tiled() : panels();
  }

 private:
  struct Piece {  // of kernels/product_panels.cl
    int64_t z0 = 0, z1 = 0, r0 = 0, r1 = 0;
    int64_t n0 = 0, n1 = 0, q0 = 0, q1 = 0;
    int64_t part = -1;
    int64_t columns = 0;
  };

  Source source() const {
    Source s;
    s.files = {"index.cl", "product.cl", call_.file, "product_kernels.cl",
               tiles_ ? "product_tiles.cl" : "product_panels.cl"};
    s.types = {{"T", call_.dtype}};
    if (!call_.end.is_nothing()) s.files.insert(s.files.begin() + 1, "math.cl");
    s.defines = call_.defines;
    const std::string lanes = std::to_string(words_.lanes);
    s.defines.insert(s.defines.end(), {{"ACC", words_.acc},
                                       {"SCALAR", words_.scalar},
                                       {"ACC_MADD", words_.madd},
                                       {"VEC_MADD", words_.vector_madd},
                                       {"VEC", words_.vector},
                                       {"LANES", lanes},
                                       {"VLOAD", "vload" + lanes},
                                       {"VSTORE", "vstore" + lanes}});
    define_end(s);
    return s;
  }

  void define_end(Source& s) const {
    const ProductEnd& end = call_.end;
    if (end.is_nothing()) return;
    const auto flag = [](bool is) { return is ? "1" : "0"; };
    const bool slope = end.activation == Activation::kGeluTanhSlope;
    s.defines.insert(s.defines.end(), {{"PRODUCT_END", "1"},
                                       {"END_BIAS", flag(end.has_bias)},
                                       {"END_KEEPS", flag(end.keeps)},
                                       {"END_SLOPE", flag(slope)}});
    if (end.activation == Activation::kNone) return;
    const char* name = slope ? "_GELU_TANH_SLOPE"
                       : end.activation == Activation::kRelu ? "_RELU"
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

  // One item per element of c, or vector of channels, and per part.
  void plain() {
    const bool gpu = !r_.features().is_cpu;
    const bool channels = call_.channels && !gpu;
    const int64_t items = f_.m * (channels ? ceil_div(f_.batches, words_.lanes)
                                           : f_.batches * f_.n);
    const int64_t enough = gpu ? 32768 : 256, least = gpu ? 256 : 2048;
    const Parts parts = parts_of(f_.k, std::min(enough / items, f_.k / least));
    const Arg to = sums(parts);
    r_.flat(source(), channels ? "product_channels" : "product_plain",
            items * parts.count,
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
    launch("product_tiles", tiles * parts.count, kTileItems,
           memory({call_.a, call_.b, call_.c, to},
                  {call_.problem, value(parts.count), value(parts.chunk)}));
    add_parts(parts, to);
  }

  // How a product of panels is split into pieces.
  struct Cut {
    Parts parts;
    int64_t panel;    // columns of b per panel
    int64_t batches;  // per piece, like the next two
    int64_t rows, columns;
  };

  bool is_complex() const {
    return call_.dtype == complex64 || call_.dtype == complex128;
  }

  Cut cut() {
    vectors_ = is_complex() || f_.n <= words_.lanes ? 1
               : f_.n <= 2 * words_.lanes           ? 2
                                                    : 4;
    Cut c;
    c.panel = vectors_ * words_.lanes;
    const int64_t rows = round_up(f_.m, kPanelRows);
    const int64_t columns = round_up(f_.n, c.panel);
    int64_t wanted = ceil_div(f_.k, kLongestPanel);
    if (rows / kPanelRows * (columns / c.panel) * f_.batches < 16) {
      wanted = std::max(wanted, f_.k / 1024);
    }
    c.parts = parts_of(f_.k, wanted);
    // Packing b pays when many rows read it.
    reads_b_ = (call_.dtype == float32 || call_.dtype == float64) &&
               f_.m <= kFewRows && f_.b_col == 1 && call_.strided_b &&
               f_.n % c.panel == 0 && vectors_ != 2;
    const int64_t deep = c.parts.chunk * (is_complex() ? 2 : 1);
    c.rows = std::min(rows, round_up(kPackedA / deep, 8 * kPanelRows));
    c.columns =
        reads_b_ ? columns
                 : std::min(columns, round_up(kPackedB / deep, 16 * c.panel));
    const bool whole = c.rows == rows && c.columns == columns;
    const int64_t each = (c.rows + c.columns) * deep;
    c.batches = whole ? std::clamp<int64_t>(kPackedA / each, 1, f_.batches) : 1;
    return c;
  }

  Arg packed(int64_t batches, int64_t rows, int64_t inner) {
    return r_.scratch(static_cast<size_t>(
        batches * rows * inner * (is_complex() ? 2 : 1) * words_.scalar_bytes));
  }

  void panels() {
    const Cut c = cut();
    packed_a_ = packed(c.batches, c.rows, c.parts.chunk);
    packed_b_ =
        reads_b_ ? call_.b : packed(c.batches, c.columns, c.parts.chunk);
    sums_ = sums(c.parts);
    Piece s;
    s.columns = c.panel;
    for (s.z0 = 0; s.z0 < f_.batches; s.z0 = s.z1) {
      s.z1 = std::min(s.z0 + c.batches, f_.batches);
      for (int64_t part = 0; part < c.parts.count; ++part) {
        s.part = c.parts.count > 1 ? part : -1;
        s.q0 = part * c.parts.chunk;
        s.q1 = std::min(s.q0 + c.parts.chunk, f_.k);
        for (s.n0 = 0; s.n0 < f_.n; s.n0 = s.n1) {
          s.n1 = std::min(s.n0 + c.columns, f_.n);
          pieces(s, c);
        }
      }
    }
    add_parts(c.parts, sums_);
  }

  // Covers all rows of some batches, columns and inner elements.
  void pieces(Piece s, const Cut& c) {
    const int64_t deep = s.q1 - s.q0, batches = s.z1 - s.z0;
    const int64_t panels_n = ceil_div(s.n1 - s.n0, c.panel);
    if (!reads_b_) {
      launch("product_pack_b", batches * panels_n * ceil_div(deep, kPackB), 1,
             {call_.b, packed_b_, call_.problem, value(s)});
    }
    for (s.r0 = 0; s.r0 < f_.m; s.r0 = s.r1) {
      s.r1 = std::min(s.r0 + c.rows, f_.m);
      const int64_t panels_m = batches * ceil_div(s.r1 - s.r0, kPanelRows);
      const bool there = s.n0 > 0 && c.rows >= f_.m;  // packed already
      if (!there) {
        launch("product_pack_a", panels_m * ceil_div(deep, kPackA), 1,
               {call_.a, packed_a_, call_.problem, value(s)});
      }
      const std::string name =
          (reads_b_ ? "product_rows_" : "product_panels_") +
          std::to_string(vectors_);
      launch(name.c_str(), panels_m * panels_n, 1,
             memory({packed_a_, packed_b_, call_.c, sums_},
                    {call_.problem, value(s)}));
    }
  }

  void launch(const char* kernel, int64_t groups, uint32_t items,
              const std::vector<Arg>& args) {
    r_.launch(source(), kernel, {{static_cast<uint32_t>(groups), 1, 1}, items},
              args);
  }

  Recipe& r_;
  const ProductCall& call_;
  const ProductFields& f_;
  const Words words_;
  const bool tiles_;
  int vectors_ = 1;
  bool reads_b_ = false;  // true: panels of b are not packed
  Arg packed_a_, packed_b_, sums_;
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
