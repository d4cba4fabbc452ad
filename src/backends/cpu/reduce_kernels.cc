// Sums and means of float32 over axes.
//
// The split depends on (shape, slices); partial results are combined along the
// fixed binary tree over part numbers.

#include <array>
#include <cstring>

#include "backends/cpu/dnnl_math.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/reduce_pattern.h"
#include "op/reduce_axes.h"

namespace berth::cpu {

namespace {

constexpr int kMaxParts = ThreadPool::kMaxChunks;
using Flags = std::array<bool, kMaxRank>;
using Kind = Pattern::Kind;

class SumKernel : public Prepared {
 public:
  SumKernel(const Pattern& pattern, double divisor, int slices)
      : p_(pattern), divisor_(divisor) {
    switch (p_.kind) {
      case Kind::kNone:
        break;
      case Kind::kAll:
        parts_ = cut_parts(p_.cols, p_.size(), slices);
        items_ = p_.cols;
        break;
      case Kind::kInner:
        parts_ = cut_parts(p_.rows, p_.size(), slices);
        items_ = p_.rows;
        break;
      case Kind::kMiddle:
        parts_ = cut_parts(p_.outer, p_.size(), slices);
        items_ = p_.outer;
        break;
      case Kind::kOuter:
        // The split of rows decides the bits: it must not depend on columns.
        items_ = p_.rows;
        parts_ = static_cast<int>(std::clamp<int64_t>(
            p_.rows / kRowsWorthAPart, 1, std::min(slices, kMaxParts)));
        if (parts_ > 1) break;
        by_columns_ = true;
        items_ = (p_.cols + kColumnUnit - 1) / kColumnUnit;
        parts_ = cut_parts(items_, p_.size(), slices);
        break;
    }
  }

  size_t scratch_bytes() const override {
    return partial_rows() ? float_bytes(parts_ * p_.cols) : 0;
  }

  void run(const KernelCall& c) const override {
    const float* x = c.in[0].as<float>();
    float* y = c.out[0].as<float>();
    switch (p_.kind) {
      case Kind::kNone:
        std::memcpy(y, x, float_bytes(p_.size()));
        break;
      case Kind::kAll:
        *y = static_cast<float>(sum_all(c, x) / divisor_);
        return;
      case Kind::kInner:
        run_parts(c, parts_, p_.size(), [&](int part) {
          const int64_t at = begin(part), n = begin(part + 1) - at;
          loops().row_sum(x + at * p_.cols, y + at, n, p_.cols);
        });
        break;
      case Kind::kMiddle:
        run_parts(c, parts_, p_.size(), [&](int part) {
          for (int64_t o = begin(part); o < begin(part + 1); ++o) {
            loops().col_sum(x + o * p_.rows * p_.cols, y + o * p_.cols, p_.rows,
                            p_.cols, p_.cols);
          }
        });
        break;
      case Kind::kOuter:
        sum_rows(c, x, y);
        break;
    }
    if (divisor_ != 1) {
      binary_loops(BinaryOp::kDiv)
          .scalar_right(y, static_cast<float>(divisor_), y, c.out[0].size());
    }
  }

 private:
  static constexpr int64_t kColumnUnit = 16;
  static constexpr int64_t kRowsWorthAPart = 64;

  int64_t begin(int part) const { return part_begin(items_, parts_, part); }
  bool partial_rows() const {
    return p_.kind == Kind::kOuter && !by_columns_ && parts_ > 1;
  }

  double sum_all(const KernelCall& c, const float* x) const {
    double sums[kMaxParts];
    run_parts(c, parts_, p_.size(), [&](int part) {
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
    const int64_t rows = p_.rows, cols = p_.cols;
    auto* partial = static_cast<float*>(c.context->scratch);
    run_parts(c, parts_, p_.size(), [&](int part) {
      const int64_t from = begin(part), to = begin(part + 1);
      if (by_columns_) {
        const int64_t at = from * kColumnUnit;
        const int64_t end = std::min(to * kColumnUnit, cols);
        loops().col_sum(x + at, y + at, rows, end - at, cols);
      } else {
        loops().col_sum(x + from * cols, partial + part * cols, to - from, cols,
                        cols);
      }
    });
    if (!partial_rows()) return;
    tree_sum(partial, parts_, cols, cols, c.context->pool);
    std::memcpy(y, partial, float_bytes(cols));
  }

  const Pattern p_;
  const double divisor_;
  bool by_columns_ = false;
  int64_t items_ = 1;  // what is split
  int parts_ = 1;
};

// Refuses empty arrays and arrangements without a loop.
std::unique_ptr<Prepared> sum_over(const PrepareArgs& args,
                                   const Flags& reduced, bool mean) {
  const Shape& full = *args.in[0].shape;
  Pattern p;
  if (full.num_elements() == 0 || !find_pattern(full, reduced, &p)) {
    return nullptr;
  }
  const double divisor =
      mean ? reduced_count(*args.op, args.attrs,
                           args.unsplit ? *args.unsplit : full)
           : 1;
  return std::make_unique<SumKernel>(p, divisor, args.slices);
}

template <bool kMean>
std::unique_ptr<Prepared> reduce(const PrepareArgs& args) {
  const int rank = args.in[0].shape->rank();
  return sum_over(args, reduced_axes(*args.op, args.attrs, rank), kMean);
}

// Output 0 has the shape of the sum: [c], or the shape of operand 1.
std::unique_ptr<Prepared> sum_to_output(const PrepareArgs& args) {
  const Shape &full = *args.in[0].shape, &to = args.out[0].shape;
  const int shift = full.rank() - to.rank();
  Flags reduced = {};
  for (int i = 0; i < full.rank(); ++i) {
    reduced[i] = i < shift || (to[i - shift] == 1 && full[i] != 1);
  }
  return sum_over(args, reduced, false);
}

}  // namespace

void add_reduce(KernelTable& t) {
  t.prepared("Sum", kFloat32, &reduce<false>, "loops");
  t.prepared("Mean", kFloat32, &reduce<true>, "loops");
  t.prepared("BiasAddGrad", kFloat32, &sum_to_output, "loops");
  t.prepared("SumLike", kFloat32, &sum_to_output, "loops");
}

}  // namespace berth::cpu
