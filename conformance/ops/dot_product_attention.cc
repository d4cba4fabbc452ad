// Attention as one op, and its gradient.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

struct Shapes {
  Shape q, k, v;
  std::optional<Shape> mask = std::nullopt;
};
struct Attention {
  double scale = 0.5;
  bool causal = false;
};

// What the gradient is given of the forward op, without a mask and where no
// axes broadcast: its result, or the logarithms of its sums.
Array forward(const Arrays& before, const Attention& a, bool sums) {
  const Array &q = before[0], &k = before[1], &v = before[2];
  const int rank = q.shape().rank();
  const int64_t s = q.shape()[rank - 2], d = q.shape()[rank - 1],
                t = k.shape()[rank - 2], e = v.shape()[rank - 1];
  Shape shape = q.shape();
  shape[rank - 1] = e;
  if (sums) shape.erase(rank - 1);
  const DType wide = q.dtype() == float64 ? float64 : float32;
  Array result(sums ? wide : q.dtype(), shape);
  const int64_t rows = sums ? result.size() : result.size() / e;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t n = r / s, i = r % s;
    const int64_t seen = a.causal ? std::min(i + 1, t) : t;
    double sum = 0;
    std::vector<double> y(static_cast<size_t>(e), 0.0);
    for (int64_t j = 0; j < seen; ++j) {
      double score = 0;
      for (int64_t x = 0; x < d; ++x) {
        score += q.at(r * d + x) * k.at((n * t + j) * d + x);
      }
      const double weight = std::exp(score * a.scale);
      sum += weight;
      for (int64_t x = 0; x < e; ++x) {
        y[static_cast<size_t>(x)] += weight * v.at((n * t + j) * e + x);
      }
    }
    if (sums) {
      result.set(r, std::log(sum));
      continue;
    }
    for (int64_t x = 0; x < e; ++x) {
      result.set(r * e + x, y[static_cast<size_t>(x)] / sum);
    }
  }
  return result;
}

bool broadcasts(const Shapes& s) {
  const int rank = s.q.rank();
  if (s.k.rank() != rank || s.v.rank() != rank) return true;
  for (int i = 0; i + 2 < rank; ++i) {
    if (s.k[i] != s.q[i] || s.v[i] != s.q[i]) return true;
  }
  return false;
}

Shape result_shape(const Shapes& s) {
  Shape y = s.q;
  y[y.rank() - 1] = s.v[s.v.rank() - 1];
  return y;
}

Case& with(Case& c, const Attention& a) {
  return c.attr("scale", a.scale).attr("is_causal", a.causal);
}

// Both ops; the gradient where nothing broadcasts but the mask.
class Both {
 public:
  Both(Cases& cases, std::string prefix, DTypeSet types)
      : cases_(cases), prefix_(std::move(prefix)), types_(types) {}

  void add(const std::string& label, const Shapes& s, const Attention& a = {},
           const std::string& no_gradients = {}) {
    const Input q = Input(s.q).uniform(-1, 1), k = Input(s.k).uniform(-1, 1),
                v = Input(s.v).uniform(-1, 1);
    Case& f = with(one("ScaledDotProductAttention", label, {q, k, v}), a);
    if (s.mask) f.input(Input(*s.mask).uniform(-2, 2));
    if (!no_gradients.empty()) f.skip_gradients(no_gradients);
    if (broadcasts(s)) return;
    const char* const why = "what the forward op gives has no gradient";
    const Shape y = result_shape(s);
    Shape sums = y;
    sums.erase(sums.rank() - 1);
    Case& b = with(
        one("ScaledDotProductAttentionGrad", label,
            {q, k, v,
             Input(y)
                 .derived([a](const Arrays& x) { return forward(x, a, false); })
                 .without_gradient(why),
             (types_ & kHalfTypes ? Input(sums).as(float32) : Input(sums))
                 .derived([a](const Arrays& x) { return forward(x, a, true); })
                 .without_gradient(why),
             Input(y).uniform(-1, 1)}),
        a);
    if (s.mask) b.input(Input(*s.mask).uniform(-2, 2)).attr("mask_grad", true);
    if (!no_gradients.empty()) b.skip_gradients(no_gradients);
  }

 private:
  Case& one(const char* op, const std::string& label, std::vector<Input> in) {
    Case& c = cases_.add(op, prefix_ + label, std::move(in)).types(types_);
    // The scores are rounded to 16 bits on the way.
    return types_ & kHalfTypes ? c.close_to(2e-2, 2e-2)
                               : c.close_to(1e-4, 1e-5);
  }

  Cases& cases_;
  const std::string prefix_;
  const DTypeSet types_;
};

void add_masked_out(Cases& cases) {
  const double inf = std::numeric_limits<double>::infinity();
  cases
      .add("ScaledDotProductAttention", "masked_out",
           {Input({2, 3, 4}), Input({2, 4, 4}), Input({2, 4, 2}),
            Input({3, 4}).of({0, -inf, -inf, 0,  //
                              -inf, -inf, -inf, -inf, -inf, -inf, 1, -inf})})
      .attr("scale", 0.5)
      .close_to(1e-4, 1e-5)
      .skip_gradients("no differences at infinity");
}

}  // namespace

void add_dot_product_attention_cases(Cases& cases) {
  Both both(cases, "", kFloatingTypes);
  const std::string longer = "the same rule as the small cases, only longer";
  both.add("matrix", {{3, 4}, {5, 4}, {5, 2}});
  both.add("batch", {{2, 3, 4}, {2, 5, 4}, {2, 5, 4}});
  both.add("heads", {{2, 2, 3, 2}, {2, 2, 3, 2}, {2, 2, 3, 2}});
  both.add("causal", {{2, 2, 3, 2}, {2, 2, 3, 2}, {2, 2, 3, 2}}, {1, true});
  both.add("causal_wide", {{2, 3, 2}, {2, 5, 2}, {2, 5, 3}}, {0.5, true});
  both.add("causal_tall", {{2, 5, 2}, {2, 3, 2}, {2, 3, 3}}, {0.5, true});
  both.add("mask", {{2, 3, 2}, {2, 4, 2}, {2, 4, 2}, Shape{2, 3, 4}});
  both.add("mask_of_keys",
           {{2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}, Shape{2, 1, 1, 4}});
  both.add("mask_and_causal", {{2, 3, 2}, {2, 4, 2}, {2, 4, 2}, Shape{3, 4}},
           {2, true});
  both.add("shared_keys", {{2, 3, 3, 2}, {3, 4, 2}, {1, 3, 4, 2}});
  both.add("shared_queries", {{3, 2}, {2, 4, 2}, {2, 4, 2}});
  both.add("own_values", {{3, 2}, {4, 2}, {2, 4, 3}});
  both.add("one_key", {{2, 3, 2}, {2, 1, 2}, {2, 1, 2}}, {1, true});
  both.add("no_queries", {{2, 0, 4}, {2, 5, 4}, {2, 5, 4}});
  both.add("no_batch", {{0, 3, 4}, {0, 5, 4}, {0, 5, 4}});
  both.add("long", {{2, 67, 8}, {2, 131, 8}, {2, 131, 8}}, {0.3, false},
           longer);
  add_masked_out(cases);
  Both halves(cases, "halves_", kHalfTypes);
  halves.add("heads", {{2, 2, 6, 8}, {2, 2, 6, 8}, {2, 2, 6, 8}});
  halves.add("causal", {{2, 2, 6, 8}, {2, 2, 6, 8}, {2, 2, 6, 8}}, {0.5, true});
  halves.add("lengths", {{2, 3, 4, 8}, {2, 3, 12, 8}, {2, 3, 12, 16}});
  halves.add("odd", {{2, 3, 5}, {2, 4, 5}, {2, 4, 3}});
  halves.add("mask", {{2, 3, 8}, {2, 4, 8}, {2, 4, 8}, Shape{3, 4}});
  halves.add("long", {{1, 2, 64, 64}, {1, 2, 64, 64}, {1, 2, 64, 64}},
             {0.125, true}, longer);
  cases
      .add("ScaledDotProductAttention", "8x4x256x32",
           {Input({8, 4, 256, 32}), Input({8, 4, 256, 32}),
            Input({8, 4, 256, 32})})
      .attr("scale", 0.125)
      .attr("is_causal", true)
      .types(dtype_bit(float32))
      .perf_only();
}

}  // namespace berth::conformance
