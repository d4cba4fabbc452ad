// Sums, means and maxima over axes.
//
// Parts are cut by (shape, slices); their partial results are combined along
// the fixed binary tree over part numbers.

#include <cstring>
#include <limits>

#include "backends/cpu/dnnl_math.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "op/reduce_axes.h"

namespace berth::cpu {

namespace {

using Kind = Spread::Kind;
constexpr int kMaxParts = ThreadPool::kMaxChunks;

// The shape of the reduced array with 1s where axes were reduced.
Shape kept_shape(const PrepareArgs& args) {
  Shape kept = *args.in[0].shape;
  const auto reduced = reduced_axes(*args.op, args.attrs, kept.rank());
  for (int i = 0; i < kept.rank(); ++i) {
    if (reduced[i]) kept[i] = 1;
  }
  return kept;
}

// [outer, rows, cols] -> [outer, cols], [rows, cols] -> [rows], all -> one, or
// a copy; see Spread.
class SumKernel : public Prepared {
 public:
  SumKernel(const Spread& spread, double divisor, int slices)
      : s_(spread),
        floats_(s_.outer * s_.rows * s_.cols),
        divisor_(divisor),
        by_columns_(s_.cols >= s_.rows && s_.cols >= kColumnUnit * slices),
        parts_(cut_parts(items(), floats_, slices)) {}

  size_t scratch_bytes() const override {
    return partial_rows() ? float_bytes(parts_ * s_.cols) : 0;
  }

  void run(const KernelCall& c) const override {
    const float* x = c.in[0].as<float>();
    float* y = c.out[0].as<float>();
    switch (s_.kind) {
      case Kind::kScalar:
        *y = static_cast<float>(sum_all(c, x) / divisor_);
        return;
      case Kind::kCols:
        run_parts(c, parts_, floats_, [&](int part) {
          const int64_t at = begin(part), n = begin(part + 1) - at;
          loops().row_sum(x + at * s_.cols, y + at, n, s_.cols);
        });
        break;
      case Kind::kRows:
        sum_rows(c, x, y);
        break;
      default:
        std::memcpy(y, x, float_bytes(floats_));
        break;
    }
    if (divisor_ != 1) {
      binary_loops(BinaryOp::kDiv)
          .scalar_right(y, static_cast<float>(divisor_), y, c.out[0].size());
    }
  }

 private:
  static constexpr int64_t kColumnUnit = 16;

  // What is cut: blocks, columns (in units), rows or elements.
  int64_t items() const {
    if (s_.kind == Kind::kScalar) return floats_;
    if (s_.kind == Kind::kCols) return s_.rows;
    if (s_.kind != Kind::kRows) return 1;
    if (s_.outer > 1) return s_.outer;
    return by_columns_ ? (s_.cols + kColumnUnit - 1) / kColumnUnit : s_.rows;
  }
  int64_t begin(int part) const { return part_begin(items(), parts_, part); }
  bool partial_rows() const {
    return s_.kind == Kind::kRows && s_.outer == 1 && !by_columns_ &&
           parts_ > 1;
  }

  double sum_all(const KernelCall& c, const float* x) const {
    double sums[kMaxParts];
    run_parts(c, parts_, floats_, [&](int part) {
      sums[part] = loops().sum(x + begin(part), begin(part + 1) - begin(part));
    });
    for (int step = 1; step < parts_; step *= 2) {
      for (int i = 0; i + step < parts_; i += 2 * step) {
        sums[i] += sums[i + step];
      }
    }
    return sums[0];
  }

  void sum_rows(const KernelCall& c, const float* x, float* y) const {
    const int64_t rows = s_.rows, cols = s_.cols;
    auto* partial = static_cast<float*>(c.context->scratch);
    run_parts(c, parts_, floats_, [&](int part) {
      const int64_t from = begin(part), to = begin(part + 1);
      if (s_.outer > 1) {
        for (int64_t o = from; o < to; ++o) {
          loops().col_sum(x + o * rows * cols, y + o * cols, rows, cols, cols);
        }
      } else if (by_columns_) {
        const int64_t at = from * kColumnUnit;
        const int64_t end = std::min(to * kColumnUnit, cols);
        loops().col_sum(x + at, y + at, rows, end - at, cols);
      } else {
        loops().col_sum(x + from * cols, parts_ > 1 ? partial + part * cols : y,
                        to - from, cols, cols);
      }
    });
    if (!partial_rows()) return;
    tree_sum(partial, parts_, cols, cols, c.context->pool);
    std::memcpy(y, partial, float_bytes(cols));
  }

  const Spread s_;
  const int64_t floats_;
  const double divisor_;
  const bool by_columns_;
  const int parts_;
};

// Empty arrays and arrangements without a loop are refused.
std::unique_ptr<Prepared> sum_over(const PrepareArgs& args, const Shape& kept,
                                   bool mean) {
  const Shape& full = *args.in[0].shape;
  if (full.num_elements() == 0) return nullptr;
  const Spread spread = spread_of(kept, full);
  if (spread.kind == Kind::kOther) return nullptr;
  const double divisor = mean ? static_cast<double>(full.num_elements()) /
                                    static_cast<double>(kept.num_elements())
                              : 1;
  return std::make_unique<SumKernel>(spread, divisor, args.slices);
}

template <bool kMean>
std::unique_ptr<Prepared> reduce(const PrepareArgs& args) {
  return sum_over(args, kept_shape(args), kMean);
}

// Output 0 is what the sum is taken to: [c], or the shape of operand 1.
std::unique_ptr<Prepared> sum_to_output(const PrepareArgs& args) {
  return sum_over(args, args.out[0].shape, false);
}

class MaxKernel : public Prepared {
 public:
  MaxKernel(const Spread& spread, int slices)
      : rows_(spread.rows),
        cols_(spread.cols),
        parts_(cut_parts(rows_ == 1 ? cols_ : rows_, rows_ * cols_, slices)) {}

  void run(const KernelCall& c) const override {
    const float* x = c.in[0].as<float>();
    float* y = c.out[0].as<float>();
    float tops[kMaxParts];
    const int64_t items = rows_ == 1 ? cols_ : rows_;
    run_parts(c, parts_, rows_ * cols_, [&](int part) {
      const int64_t from = part_begin(items, parts_, part);
      const int64_t to = part_begin(items, parts_, part + 1);
      if (rows_ == 1) {
        tops[part] = loops().max(x + from, to - from);
      } else {
        for (int64_t r = from; r < to; ++r) {
          y[r] = loops().max(x + r * cols_, cols_);
        }
      }
    });
    if (rows_ == 1) *y = loops().max(tops, parts_);
  }

 private:
  const int64_t rows_, cols_;
  const int parts_;
};

std::unique_ptr<Prepared> max(const PrepareArgs& args) {
  const Shape& full = *args.in[0].shape;
  if (full.num_elements() == 0) return nullptr;
  const Spread spread = spread_of(kept_shape(args), full);
  if (spread.kind != Kind::kScalar && spread.kind != Kind::kCols) {
    return nullptr;
  }
  return std::make_unique<MaxKernel>(spread, args.slices);
}

}  // namespace

void add_reduce(KernelTable& t) {
  t.prepared("Sum", kFloat32, &reduce<false>, "loops");
  t.prepared("Mean", kFloat32, &reduce<true>, "loops");
  t.prepared("Max", kFloat32, &max, "loops");
  t.prepared("BiasAddGrad", kFloat32, &sum_to_output, "loops");
  t.prepared("SumLike", kFloat32, &sum_to_output, "loops");
}

}  // namespace berth::cpu
