// Matrix products.

#include <fmt/format.h>

#include "base/immortal.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

AttrsRef transposes(bool a, bool b) {
  using Pairs = std::vector<Attrs::Pair>;
  static const auto& kNone = immortal<AttrsRef>();
  static const auto& kA = immortal<AttrsRef>(Pairs{{"transpose_a", true}});
  static const auto& kB = immortal<AttrsRef>(Pairs{{"transpose_b", true}});
  static const auto& kBoth =
      immortal<AttrsRef>(Pairs{{"transpose_a", true}, {"transpose_b", true}});
  return a ? (b ? kBoth : kA) : (b ? kB : kNone);
}

// The transposes that are left once the operands are conjugated.
MatMulOptions without_adjoints(const MatMulOptions& options, Site site) {
  if ((options.transpose_a && options.adjoint_a) ||
      (options.transpose_b && options.adjoint_b)) {
    throw errors::InvalidArgument(fmt::format(
        "matmul{}: transpose and adjoint of the same operand; expected one of "
        "them",
        where_text(nullptr, site)));
  }
  return {.transpose_a = options.transpose_a || options.adjoint_a,
          .transpose_b = options.transpose_b || options.adjoint_b};
}

void infer_matmul(InferContext& c) {
  const Shape &a = c.shape(0), &b = c.shape(1);
  if (a.rank() < 2 || b.rank() < 2) {
    c.fail(
        fmt::format("a is {}, b is {}; expected matrices [..., m, k] and "
                    "[..., k, n]",
                    a.str(), b.str()));
  }
  const bool ta = c.attr<bool>("transpose_a"), tb = c.attr<bool>("transpose_b");
  const int ra = a.rank(), rb = b.rank();
  const int64_t m = a[ta ? ra - 1 : ra - 2], ka = a[ta ? ra - 2 : ra - 1];
  const int64_t kb = b[tb ? rb - 1 : rb - 2], n = b[tb ? rb - 2 : rb - 1];
  if (ka >= 0 && kb >= 0 && ka != kb) {
    c.fail(
        fmt::format("inner dimensions differ: a is {}{}, b is {}{}; "
                    "expected b.shape[{}] == {}",
                    a.str(), ta ? " transposed" : "", b.str(),
                    tb ? " transposed" : "", tb ? rb - 1 : rb - 2, ka));
  }
  Shape batch_a = a, batch_b = b;
  for (int i = 0; i < 2; ++i) {
    batch_a.erase(batch_a.rank() - 1);
    batch_b.erase(batch_b.rank() - 1);
  }
  Shape out = broadcast_shapes(c, batch_a, batch_b);
  out.push_back(m);
  out.push_back(n);
  c.set_output(0, c.dtype(0), out);
}

// True for products of rows [..., k] with one matrix.
bool one_matrix(const Tensor& a, const Tensor& b, bool transpose_a) {
  return a.shape().rank() > 2 && b.shape().rank() == 2 && !transpose_a &&
         b.shape()[0] > 0 && b.shape()[1] > 0;
}

// x as [rows, width].
Tensor rows_of(const Tensor& x) {
  int64_t rows = 1;
  const int last = x.shape().rank() - 1;
  for (int i = 0; i < last && rows >= 0; ++i) {
    rows = x.shape()[i] < 0 ? kUnknownDim : rows * x.shape()[i];
  }
  return reshape(x, {rows, x.shape()[last]}, {});
}

// d(op(a) op(b)): each case is again one product, without a transpose. The
// gradient of one matrix adds up over all rows inside the product, rather than
// over a matrix per leading index.
Tensors grad_matmul(const GradCall& g) {
  const Tensor a = math::conj(g.x(0), {}), b = math::conj(g.x(1), {});
  const bool ta = g.attr<bool>("transpose_a"), tb = g.attr<bool>("transpose_b");
  auto product = [](const Tensor& x, const Tensor& y, bool tx, bool ty) {
    return call1(op_of<"MatMul">(), x, y, transposes(tx, ty).get());
  };
  const Tensor dy = g.dy();
  Tensor da, db;
  if (g.needs(0)) {
    da = ta ? product(b, dy, tb, true) : product(dy, b, false, !tb);
    da = sum_to(da, a);
  }
  if (g.needs(1)) {
    const bool flat = one_matrix(a, b, ta);
    const Tensor x = flat ? rows_of(a) : a, y = flat ? rows_of(dy) : dy;
    db = tb ? product(y, x, true, ta) : product(x, y, !ta, false);
    db = sum_to(db, b);
  }
  return {da, db};
}

Cost cost_matmul(const InferContext& c) {
  const Shape& a = c.shape(0);
  const int64_t k =
      a[c.attr<bool>("transpose_a") ? a.rank() - 2 : a.rank() - 1];
  const double out = static_cast<double>(c.output(0).shape.num_elements());
  const double in = static_cast<double>(a.num_elements()) +
                    static_cast<double>(c.shape(1).num_elements());
  return {2.0 * out * static_cast<double>(k),
          (in + out) * static_cast<double>(size_of(c.dtype(0)))};
}

// Rows of a, columns of b, or the inner dimension as partial sums; and leading
// dimensions, in an operand that has them.
std::vector<SplitSignature> split_matmul(const InferContext& c) {
  const int ra = c.shape(0).rank(), rb = c.shape(1).rank();
  const int ro = c.output(0).shape.rank();
  const bool ta = c.attr<bool>("transpose_a"), tb = c.attr<bool>("transpose_b");
  const auto axis = [](int i) { return static_cast<int8_t>(i); };
  const int8_t whole = SplitSignature::kWhole;
  std::vector<SplitSignature> rules = {
      {{axis(ta ? ra - 1 : ra - 2), whole}, {axis(ro - 2)}},
      {{whole, axis(tb ? rb - 2 : rb - 1)}, {axis(ro - 1)}},
      {{axis(ta ? ra - 2 : ra - 1), axis(tb ? rb - 1 : rb - 2)},
       {SplitSignature::kPartialSum}}};
  const auto own = [&](const Shape& s, int i) {
    const int at = i - (ro - s.rank());
    return at < 0 || s[at] == 1 ? whole : axis(at);
  };
  for (int i = 0; i + 2 < ro; ++i) {
    if (c.output(0).shape[i] == 1) continue;
    rules.push_back({{own(c.shape(0), i), own(c.shape(1), i)}, {axis(i)}});
  }
  return rules;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatMulOptions& options,
              Site site) {
  if (options.adjoint_a || options.adjoint_b) {
    return matmul(options.adjoint_a ? math::conj(a, site) : a,
                  options.adjoint_b ? math::conj(b, site) : b,
                  without_adjoints(options, site), site);
  }
  set_site(site);
  return call1(op_of<"MatMul">(), a, b,
               transposes(options.transpose_a, options.transpose_b).get());
}

void register_matmul_ops(OpRegistry& r) {
  r.op("MatMul")
      .input("a", kEveryNumber)
      .input("b", kEveryNumber)
      .output("product")
      .attr("transpose_a", false)
      .attr("transpose_b", false)
      .infer(&infer_matmul)
      .gradient(&grad_matmul)
      .cost(&cost_matmul)
      .split(&split_matmul)
      .doc("Matrix product; leading dimensions broadcast.");
}

}  // namespace berth
