// bfloat16 and float16 in ops whose rows are independent: the float32 kernel
// processes as many rows at a time as stay in cache.

#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/half.h"
#include "berth/errors.h"

namespace berth::cpu {

namespace {

constexpr int kMostRowOperands = 8;

// The data of an operand for each row of x, the first input, [..., columns].
enum class Has : char {
  kRow = 'r',    // all columns
  kOne = '1',    // one element
  kWhole = 'w',  // nothing: every row reads all of it
  kSum = 's',    // the same, and adds to it
};
struct RowOp {
  const char* op;
  const char* operands;  // one Has each, inputs and outputs
  bool in_place = false;
};
constexpr RowOp kRowOps[] = {
    {"Softmax", "rr", true},
    {"LogSoftmax", "rr", true},
    {"SoftmaxCrossEntropyWithLogits", "rr1r"},
    {"SparseSoftmaxCrossEntropyWithLogits", "r11r"},
    {"LayerNorm", "rwwr11"},
    {"LayerNormGrad", "rrw11rss"},
};

// The float32 call for some rows of another call.
class RowBlock {
 public:
  RowBlock(const KernelCall& c, const char* operands)
      : c_(c), n_(c.num_in + c.num_out), operands_(operands) {
    const Shape& x = *c.in[0].shape;
    columns_ = x[x.rank() - 1];
    rows_ = columns_ > 0 ? x.num_elements() / columns_ : 0;
    step_ = std::clamp<int64_t>(kHalfBlock / std::max<int64_t>(columns_, 1), 1,
                                std::max<int64_t>(rows_, 1));
    for (int k = 0; k < n_; ++k) {
      room_[k] = is_staged(k) ? (size(k, step_) + 15) / 16 * 16 : 0;
      total_ += room_[k];
    }
  }
  int64_t rows() const { return rows_; }
  int64_t step() const { return step_; }
  int64_t total() const { return total_; }

  void use(float* memory) {
    for (int k = 0; k < n_; ++k) {
      const View& v = view(k);
      views_[k] = {v.data, &shapes_[k], v.dtype};
      if (!is_staged(k)) continue;
      views_[k].data = memory;
      views_[k].dtype = float32;
      memory += room_[k];
      if (has(k) == Has::kWhole) widen(k, 0, v.size());
    }
  }

  // Runs rows [at, at + rows).
  void run(DirectKernel kernel, int64_t at, int64_t rows) {
    for (int k = 0; k < n_; ++k) {
      const int64_t each = has(k) == Has::kRow ? columns_ : 1;
      shapes_[k] = shape(k, rows);
      if (has(k) != Has::kRow && has(k) != Has::kOne) continue;
      if (!is_staged(k)) {
        views_[k].data = half_place(view(k), at * each);
      } else if (k < c_.num_in) {
        widen(k, at * each, rows * each);
      }
    }
    KernelCall call = c_;
    call.in = views_.data();
    call.out = views_.data() + c_.num_in;
    kernel(call);
    for (int k = c_.num_in; k < n_; ++k) {
      const View& v = view(k);
      if (has(k) == Has::kSum) {
        add(views_[k].as<float>(), v.as<float>(), v.size(), at == 0);
      } else if (is_staged(k)) {
        const int64_t each = has(k) == Has::kRow ? columns_ : 1;
        round_half(v.dtype, views_[k].as<float>(),
                   static_cast<uint16_t*>(half_place(v, at * each)),
                   rows * each);
      }
    }
  }

 private:
  const View& view(int k) const {
    return k < c_.num_in ? c_.in[k] : c_.out[k - c_.num_in];
  }
  Has has(int k) const { return static_cast<Has>(operands_[k]); }
  bool is_staged(int k) const {
    return is_half(view(k).dtype) || has(k) == Has::kSum;
  }
  int64_t size(int k, int64_t rows) const {
    switch (has(k)) {
      case Has::kRow:
        return rows * columns_;
      case Has::kOne:
        return rows;
      default:
        return view(k).size();
    }
  }
  Shape shape(int k, int64_t rows) const {
    if (has(k) == Has::kRow) return {rows, columns_};
    return {has(k) == Has::kOne ? rows : view(k).size()};
  }
  void widen(int k, int64_t at, int64_t n) {
    const View& v = view(k);
    widen_half(v.dtype, static_cast<uint16_t*>(half_place(v, at)),
               views_[k].as<float>(), n);
  }
  static void add(const float* part, float* sum, int64_t n, bool first) {
    if (first) std::fill_n(sum, n, 0.0f);
    binary_loops(BinaryOp::kAdd).same(part, sum, sum, n);
  }

  const KernelCall& c_;
  const int n_;
  const char* const operands_;
  int64_t columns_ = 0, rows_ = 0, step_ = 1, total_ = 0;
  std::array<int64_t, kMostRowOperands> room_{};
  std::array<View, kMostRowOperands> views_;
  std::array<Shape, kMostRowOperands> shapes_;
};

template <size_t kOp>
void by_rows(const KernelCall& c) {
  RowBlock block(c, kRowOps[kOp].operands);
  if (block.rows() == 0) return run_half_reference(c);
  const HalfFloats room(block.total());
  block.use(room.get());
  const DirectKernel kernel = kernels().fast(c.op->id(), float32);
  try {
    for (int64_t at = 0; at < block.rows(); at += block.step()) {
      block.run(kernel, at, std::min(block.step(), block.rows() - at));
    }
  } catch (const errors::InvalidArgument&) {
    run_half_reference(c);  // reports the caller's row number
  }
}

template <size_t... kOps>
void add_row_ops(KernelTable& t, std::index_sequence<kOps...>) {
  (t.direct(kRowOps[kOps].op, kHalfTypes, &by_rows<kOps>, "loops in float32",
            kRowOps[kOps].in_place),
   ...);
}

}  // namespace

void add_half_rows(KernelTable& t) {
  add_row_ops(t, std::make_index_sequence<std::size(kRowOps)>());
}

}  // namespace berth::cpu
