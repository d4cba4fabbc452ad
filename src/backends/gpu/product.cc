#include "backends/gpu/product.h"

#include <algorithm>

#include "op/op_def.h"

namespace berth::gpu {

namespace product {

// PANEL_ROWS, PACK_A, PACK_B of kernels/product_panels.cl, TILE of
// kernels/product_tiles.cl.
constexpr int64_t kPanelRows = 6, kPackA = 256, kPackB = 32;
constexpr int64_t kTile = 64;
constexpr uint32_t kTileItems = 256;
// Elements of packed operands that are kept at a time: they stay in caches.
constexpr int64_t kPacked = int64_t{4} << 20;
// Inner elements of a panel, of which a column of panels stays in a cache.
constexpr int64_t kLongestPanel = 8192;
constexpr int64_t kMostParts = 64;
// Below these, a product of one batch is not worth panels or tiles.
constexpr int64_t kFewProducts = 4096;
constexpr int64_t kNarrow = 4;
constexpr int64_t kFewRows = 12;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What sums are kept in, and the vectors of that.
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

// The parts of the inner dimension, whose sums are added.
struct Parts {
  int64_t count = 1;
  int64_t chunk = 0;  // inner elements of each but the last
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

  void write() {
    const bool small = f_.n < kNarrow || f_.m * f_.n * f_.k < kFewProducts ||
                       (tiles_ && f_.m < kNarrow);
    if (small) return plain();
    return tiles_ ? tiled() : panels();
  }

 private:
  struct Piece {  // of kernels/product_panels.cl
    int64_t z0 = 0, z1 = 0, r0 = 0, r1 = 0, q0 = 0, q1 = 0;
    int64_t part = -1;
    int64_t columns = 0;
  };

  Source source() const {
    Source s;
    s.files = {"index.cl", "product.cl", call_.file, "product_kernels.cl",
               tiles_ ? "product_tiles.cl" : "product_panels.cl"};
    s.types = {{"T", call_.dtype}};
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
    return s;
  }

  // Where parts go; no buffer when there is one.
  Arg sums(const Parts& parts) {
    if (parts.count == 1) return no_buffer();
    return r_.scratch(static_cast<size_t>(parts.count * f_.batches * f_.m *
                                          f_.n * words_.acc_bytes));
  }
  void add_parts(const Parts& parts, const Arg& sums) {
    if (parts.count == 1) return;
    r_.flat(source(), "product_sum", f_.batches * f_.m * f_.n,
            {sums, call_.c, call_.problem, value(parts.count)});
  }

  // An item for each element of c, or vector of channels, and each part.
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
            {call_.a, call_.b, call_.c, to, call_.problem, value(parts.count),
             value(parts.chunk)});
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
           {call_.a, call_.b, call_.c, to, call_.problem, value(parts.count),
            value(parts.chunk)});
    add_parts(parts, to);
  }

  void panels() {
    const bool is_complex =
        call_.dtype == complex64 || call_.dtype == complex128;
    const int64_t planes = is_complex ? 2 : 1;
    vectors_ = is_complex || f_.n <= words_.lanes ? 1
               : f_.n <= 2 * words_.lanes         ? 2
                                                  : 4;
    const int64_t columns = vectors_ * words_.lanes;
    const int64_t width = ceil_div(f_.n, columns) * columns;
    const int64_t blocks = ceil_div(f_.m, kPanelRows) * (width / columns);
    int64_t wanted = ceil_div(f_.k, kLongestPanel);
    if (blocks * f_.batches < 16) wanted = std::max(wanted, f_.k / 1024);
    const Parts parts = parts_of(f_.k, wanted);
    const int64_t deep = parts.chunk * planes;
    const int64_t whole = ceil_div(f_.m, kPanelRows) * kPanelRows;
    const int64_t rows = std::min(
        whole, std::max<int64_t>(kPacked / deep / kPanelRows, 8) * kPanelRows);
    const int64_t batches =
        rows < whole ? 1
                     : std::clamp<int64_t>(kPacked / ((rows + width) * deep), 1,
                                           f_.batches);
    packed_a_ = r_.scratch(
        static_cast<size_t>(batches * rows * deep * words_.scalar_bytes));
    // Not worth packing for the few rows that read it.
    const bool plain = call_.dtype == float32 || call_.dtype == float64;
    reads_b_ = plain && f_.m <= kFewRows && f_.b_col == 1 && call_.strided_b &&
               f_.n % columns == 0 && vectors_ != 2;
    packed_b_ = reads_b_ ? call_.b
                         : r_.scratch(static_cast<size_t>(
                               batches * width * deep * words_.scalar_bytes));
    sums_ = sums(parts);
    for (int64_t z = 0; z < f_.batches; z += batches) {
      for (int64_t part = 0; part < parts.count; ++part) {
        Piece s;
        s.z0 = z;
        s.z1 = std::min(z + batches, f_.batches);
        s.q0 = part * parts.chunk;
        s.q1 = std::min(s.q0 + parts.chunk, f_.k);
        s.part = parts.count > 1 ? part : -1;
        s.columns = columns;
        pieces(s, rows, width / columns);
      }
    }
    add_parts(parts, sums_);
  }

  // All rows, `rows` at a time, of some batches and inner elements.
  void pieces(Piece s, int64_t rows, int64_t panels_n) {
    const int64_t deep = s.q1 - s.q0, batches = s.z1 - s.z0;
    if (!reads_b_) {
      launch("product_pack_b", batches * panels_n * ceil_div(deep, kPackB), 1,
             {call_.b, packed_b_, call_.problem, value(s)});
    }
    for (int64_t r0 = 0; r0 < f_.m; r0 += rows) {
      s.r0 = r0;
      s.r1 = std::min(r0 + rows, f_.m);
      const int64_t panels_m = batches * ceil_div(s.r1 - s.r0, kPanelRows);
      launch("product_pack_a", panels_m * ceil_div(deep, kPackA), 1,
             {call_.a, packed_a_, call_.problem, value(s)});
      const std::string name =
          (reads_b_ ? "product_rows_" : "product_panels_") +
          std::to_string(vectors_);
      launch(name.c_str(), panels_m * panels_n, 1,
             {packed_a_, packed_b_, call_.c, sums_, call_.problem, value(s)});
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
  bool reads_b_ = false;  // panels of b are not packed
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

}  // namespace berth::gpu
