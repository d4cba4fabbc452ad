// Sine and cosine, and the reductions that reduce_kernels.cc does not cover:
// every number type, over the first, middle and last axes.

#include <cstring>

#include "backends/cpu/function_loops.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/reduce_pattern.h"
#include "backends/reference/reference.h"
#include "op/reduce_axes.h"

namespace berth::cpu {

const FunctionLoops& function_loops() {
#if defined(__x86_64__)
  if (loops().isa == Isa::kV4) return v4::function_table();
  if (loops().isa == Isa::kV3) return v3::function_table();
#endif
  return v1::function_table();
}

namespace {

using Kind = Pattern::Kind;

// A bool is 0 or 1: "all" is the minimum, "any" the maximum.
int fold_type(DType dtype) {
  switch (dtype) {
    case float32:
      return 0;
    case float64:
      return 1;
    case int32:
      return 2;
    case int64:
      return 3;
    default:
      return 4;
  }
}

// Parts never share an element of the result, unless it has only one.
class FoldKernel : public Prepared {
 public:
  FoldKernel(const Pattern& pattern, Fold fold, DType dtype, int slices)
      : p_(pattern),
        loops_(function_loops().fold[static_cast<int>(fold)][fold_type(dtype)]),
        size_(static_cast<int64_t>(size_of(dtype))),
        items_(items_of(pattern)),
        parts_(p_.kind == Kind::kAll && fold == Fold::kProd
                   ? 1  // one part's product may overflow
                   : cut_parts(items_, p_.size(), slices)) {}

  void run(const KernelCall& c) const override {
    const auto* x = static_cast<const std::byte*>(c.in[0].data);
    auto* y = static_cast<std::byte*>(c.out[0].data);
    std::byte tops[ThreadPool::kMaxChunks * sizeof(double)];
    run_parts(c, parts_, p_.size(), [&](int part) {
      const int64_t from = part_begin(items_, parts_, part);
      const int64_t n = part_begin(items_, parts_, part + 1) - from;
      run_part(x, p_.kind == Kind::kAll ? tops + part * size_ : y, from, n);
    });
    if (p_.kind == Kind::kAll) loops_.inner(tops, y, 1, parts_);
  }

 private:
  static constexpr int64_t kColumnUnit = 64;

  static int64_t items_of(const Pattern& p) {
    switch (p.kind) {
      case Kind::kInner:
        return p.rows;
      case Kind::kMiddle:
        return p.outer;
      case Kind::kOuter:
        return (p.cols + kColumnUnit - 1) / kColumnUnit;
      default:
        return p.cols;
    }
  }

  void run_part(const std::byte* x, std::byte* y, int64_t from,
                int64_t n) const {
    const int64_t row = p_.cols * size_;
    switch (p_.kind) {
      case Kind::kNone:
        std::memcpy(y + from * size_, x + from * size_,
                    static_cast<size_t>(n * size_));
        break;
      case Kind::kAll:
        loops_.inner(x + from * size_, y, 1, n);
        break;
      case Kind::kInner:
        loops_.inner(x + from * row, y + from * size_, n, p_.cols);
        break;
      case Kind::kMiddle:
        for (int64_t o = from; o < from + n; ++o) {
          loops_.outer(x + o * p_.rows * row, y + o * row, p_.rows, p_.cols,
                       p_.cols);
        }
        break;
      case Kind::kOuter: {
        const int64_t at = from * kColumnUnit;
        const int64_t end = std::min((from + n) * kColumnUnit, p_.cols);
        loops_.outer(x + at * size_, y + at * size_, p_.rows, end - at,
                     p_.cols);
        break;
      }
    }
  }

  const Pattern p_;
  const FoldLoops loops_;
  const int64_t size_, items_;
  const int parts_;
};

template <Fold kFold>
std::unique_ptr<Prepared> fold(const PrepareArgs& args) {
  const Shape& full = *args.in[0].shape;
  Pattern p;
  if (full.num_elements() == 0 ||
      !find_pattern(full, reduced_axes(*args.op, args.attrs, full.rank()),
                    &p)) {
    return nullptr;
  }
  return std::make_unique<FoldKernel>(p, kFold, args.in[0].dtype, args.slices);
}

template <bool kMax>
void arg_extreme(const KernelCall& c) {
  const Shape& in = *c.in[0].shape;
  const int axis =
      normalize_axis(c.attr<int64_t>("axis"), in.rank(), c.op->name().c_str());
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= in[i];
  for (int i = axis + 1; i < in.rank(); ++i) inner *= in[i];
  const int64_t n = in[axis];
  if (outer * inner * n == 0 || n > INT32_MAX) {
    return reference::kernels().fast(c.op->id(), c.in[0].dtype)(c);
  }
  const ArgLoops& loops =
      function_loops().arg[kMax ? 0 : 1][fold_type(c.in[0].dtype)];
  const bool wide = c.out[0].dtype == int64;
  if (inner == 1) {
    return loops.inner(c.in[0].data, c.out[0].data, wide, outer, n);
  }
  const auto* x = static_cast<const std::byte*>(c.in[0].data);
  auto* y = static_cast<std::byte*>(c.out[0].data);
  const auto row = n * inner * static_cast<int64_t>(size_of(c.in[0].dtype));
  for (int64_t o = 0; o < outer; ++o) {
    loops.outer(x + o * row, y + o * inner * (wide ? 8 : 4), wide, n, inner);
  }
}

void sine(const KernelCall& c) {
  function_loops().sin(c.in[0].as<float>(), c.out[0].as<float>(),
                       c.out[0].size());
}
void cosine(const KernelCall& c) {
  function_loops().cos(c.in[0].as<float>(), c.out[0].as<float>(),
                       c.out[0].size());
}

}  // namespace

void add_folds(KernelTable& t) {
  t.prepared("Max", kNumberTypes, &fold<Fold::kMax>, "loops");
  t.prepared("Min", kNumberTypes, &fold<Fold::kMin>, "loops");
  t.prepared("Prod", kNumberTypes, &fold<Fold::kProd>, "loops");
  t.prepared("Sum", kIntegerTypes | dtype_bit(float64), &fold<Fold::kSum>,
             "loops");
  t.prepared("All", kBoolType, &fold<Fold::kMin>, "loops");
  t.prepared("Any", kBoolType, &fold<Fold::kMax>, "loops");
  t.direct("ArgMax", kNumberTypes, &arg_extreme<true>, "loops");
  t.direct("ArgMin", kNumberTypes, &arg_extreme<false>, "loops");
  t.direct("Sin", kFloat32, &sine, "loops", true);
  t.direct("Cos", kFloat32, &cosine, "loops", true);
}

}  // namespace berth::cpu
