// einsum and its relatives: composites of transpose, reshape, matmul, sum.

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/contract.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "ops/labelled.h"
#include "ops/named_call.h"

namespace berth {

namespace {

// Labels of axes: letters are themselves, those of "..." are numbers from
// here, the last axis highest.
constexpr int kEllipsis = 1000;
// The second of two axes that one letter of the result names.
constexpr int kTwin = 2000;

bool is_letter(char c) {  // whatever the locale
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Equation {
 public:
  Equation(std::string_view text, size_t operands, Site site);

  // The labels of operand i of shape `shape`; a letter may repeat.
  Labels of_operand(size_t i, const Shape& shape) const;
  Labels of_result() const;
  // Fails unless the axes that a letter names have one size.
  void check(const Tensors& operands) const;

  [[noreturn]] void fail(const std::string& message) const {
    throw errors::InvalidArgument(fmt::format(
        "einsum \"{}\": {}{}", text_, message, where_text(nullptr, site_)));
  }

 private:
  // A letter is itself, "..." is kEllipsis.
  Labels parse(std::string_view term) const;
  Labels implicit_result() const;

  std::string text_;
  Site site_;
  std::vector<Labels> terms_;
  Labels result_;
  mutable int broadcast_ = 0;  // axes that "..." stands for, the most
};

Labels Equation::parse(std::string_view term) const {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.substr(i, 3) == "...") {
      if (contains(labels, kEllipsis)) fail("a term has two \"...\"");
      labels.push_back(kEllipsis);
      i += 2;
    } else if (is_letter(term[i])) {
      labels.push_back(term[i]);
    } else {
      fail(
          fmt::format("'{}' is no axis; expected letters, \"...\", \",\" and "
                      "one \"->\"",
                      term[i]));
    }
  }
  return labels;
}

Labels Equation::implicit_result() const {
  Labels all, once;
  for (const Labels& t : terms_) all.insert(all.end(), t.begin(), t.end());
  std::sort(all.begin(), all.end());
  if (contains(all, kEllipsis)) once.push_back(kEllipsis);
  for (int label : all) {
    if (label != kEllipsis && std::count(all.begin(), all.end(), label) == 1) {
      once.push_back(label);
    }
  }
  return once;
}

Equation::Equation(std::string_view text, size_t operands, Site site)
    : text_(text), site_(site) {
  std::string s;
  for (char c : text) {
    if (c != ' ') s += c;
  }
  const size_t arrow = s.find("->");
  const std::string_view left = std::string_view(s).substr(0, arrow);
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    terms_.push_back(parse(left.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (terms_.size() != operands) {
    fail(
        fmt::format("{} operands given; expected {}", operands, terms_.size()));
  }
  if (arrow == std::string::npos) {
    result_ = implicit_result();
    return;
  }
  result_ = parse(std::string_view(s).substr(arrow + 2));
  Labels all;
  for (const Labels& t : terms_) all.insert(all.end(), t.begin(), t.end());
  if (contains(all, kEllipsis) && !contains(result_, kEllipsis)) {
    fail("operands have \"...\", the result none; expected it in both");
  }
  for (int label : result_) {
    if (contains(all, label) || label == kEllipsis) continue;
    fail(fmt::format("no operand has the result's axis '{}'",
                     static_cast<char>(label)));
  }
}

Labels Equation::of_operand(size_t i, const Shape& shape) const {
  const Labels& term = terms_[i];
  const bool open = contains(term, kEllipsis);
  const int named = static_cast<int>(term.size()) - (open ? 1 : 0);
  const int rest = shape.rank() - named;
  if (rest < 0 || (!open && rest > 0)) {
    fail(fmt::format("operand {} is {}; expected {} axes{}", i, shape.str(),
                     named, open ? " or more" : ""));
  }
  broadcast_ = std::max(broadcast_, rest);
  Labels labels;
  for (int label : term) {
    if (label != kEllipsis) labels.push_back(label);
    for (int k = rest; label == kEllipsis && k > 0; --k) {
      labels.push_back(kEllipsis + kMaxRank - k);
    }
  }
  return labels;
}

Labels Equation::of_result() const {
  Labels labels;
  for (int label : result_) {
    if (label != kEllipsis) labels.push_back(label);
    for (int k = broadcast_; label == kEllipsis && k > 0; --k) {
      labels.push_back(kEllipsis + kMaxRank - k);
    }
  }
  return labels;
}

void Equation::check(const Tensors& operands) const {
  int64_t sizes[128];
  std::fill_n(sizes, 128, int64_t{kUnknownDim});
  for (size_t i = 0; i < operands.size(); ++i) {
    const Shape& shape = operands[i].shape();
    const Labels labels = of_operand(i, shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const int label = labels[static_cast<size_t>(axis)];
      if (label >= kEllipsis || shape[axis] < 0) continue;
      int64_t& size = sizes[label];
      if (size >= 0 && size != shape[axis]) {
        fail(fmt::format(
            "axis '{}' is {} in operand {}, which is {}; expected {} as before",
            static_cast<char>(label), shape[axis], i, shape.str(), size));
      }
      size = shape[axis];
    }
  }
}

// True on the diagonal of axes p < q of a tensor of rank `rank`, both of size
// n; 1 elsewhere.
Tensor diagonal_mask(int64_t n, int p, int q, int rank, Site site) {
  const Tensor index = range(0, n, 1, int64, site);
  Shape along_p, along_q;
  for (int i = 0; i < rank; ++i) {
    along_p.push_back(i == p ? n : 1);
    along_q.push_back(i == q ? n : 1);
  }
  return math::equal(reshape(index, along_p, site),
                     reshape(index, along_q, site), site);
}

Tensor on_diagonal(const Equation& e, const Tensor& x, int p, int q,
                   Site site) {
  const int64_t n = x.shape()[p];
  if (n < 0) e.fail("the size of a repeated axis is not known");
  const Tensor mask = diagonal_mask(n, p, q, x.rank(), site);
  return where(mask, x, scalar_like(x, 0), site);
}

// Takes the diagonal of axes with one label, until all are distinct.
Labelled distinct(const Equation& e, Labelled x, Site site) {
  for (size_t q = 1; q < x.labels.size();) {
    const auto end = x.labels.begin() + static_cast<ptrdiff_t>(q);
    const auto p = std::find(x.labels.begin(), end, x.labels[q]);
    if (p == end) {
      ++q;
      continue;
    }
    x.t = on_diagonal(e, x.t, static_cast<int>(p - x.labels.begin()),
                      static_cast<int>(q), site);
    const std::vector<int64_t> axis{static_cast<int64_t>(q)};
    x.t = math::reduce_sum(x.t, {.axis = axis}, site);
    x.labels.erase(end);
  }
  return x;
}

// Makes a diagonal for each label that the result repeats; returns the
// result's labels, then distinct.
Labels spread(const Equation& e, Labelled* x, Labels result, Site site) {
  for (size_t i = 0; i < result.size(); ++i) {
    const auto here = result.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(result.begin(), here, result[i]) == here) continue;
    const auto own = std::find(x->labels.begin(), x->labels.end(), result[i]);
    const int p = static_cast<int>(own - x->labels.begin());
    x->t = on_diagonal(e, expand_dims(x->t, -1, site), p, x->t.rank(), site);
    result[i] = kTwin + static_cast<int>(i);
    x->labels.push_back(result[i]);
  }
  return result;
}

}  // namespace

Tensor einsum(std::string_view text, const Tensors& operands, Site site) {
  set_site(site);
  const Equation e(text, operands.size(), site);
  e.check(operands);
  std::vector<Labelled> list;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Labels labels = e.of_operand(i, operands[i].shape());
    list.push_back(distinct(e, {operands[i], labels}, site));
  }
  Labelled x = list[0];
  const Labels result = e.of_result();
  for (size_t i = 1; i < list.size(); ++i) {
    Labels kept = result;  // and what later operands read
    for (size_t k = i + 1; k < list.size(); ++k) {
      kept.insert(kept.end(), list[k].labels.begin(), list[k].labels.end());
    }
    x = contract("einsum", x, list[i], kept, site);
  }
  x = summed(x, result, site);
  const Labels order = spread(e, &x, result, site);
  return permuted(x, order, site);
}

namespace {

TensordotAxes pairs_of(const Tensor& a, const Tensor& b, int64_t n) {
  if (n < 0 || n > a.rank() || n > b.rank()) {
    throw errors::InvalidArgument(fmt::format(
        "tensordot: axes is {}, a is {}, b is {}{}; expected 0 to the smaller "
        "rank",
        n, a.shape().str(), b.shape().str(), where_text()));
  }
  TensordotAxes axes({}, {});
  for (int64_t i = 0; i < n; ++i) {
    axes.of_a.push_back(a.rank() - n + i);
    axes.of_b.push_back(i);
  }
  return axes;
}

}  // namespace

Tensor tensordot(const Tensor& a, const Tensor& b, const TensordotAxes& given,
                 Site site) {
  set_site(site);
  const TensordotAxes axes = given.n ? pairs_of(a, b, *given.n) : given;
  Labelled x{a, {}}, y{b, {}};
  for (int i = 0; i < a.rank(); ++i) x.labels.push_back(i);
  for (int i = 0; i < b.rank(); ++i) y.labels.push_back(kMaxRank + i);
  bool fits = axes.of_a.size() == axes.of_b.size();
  Labels summed;
  for (size_t i = 0; fits && i < axes.of_a.size(); ++i) {
    const int p = normalize_axis(axes.of_a[i], a.rank(), "tensordot");
    const int q = normalize_axis(axes.of_b[i], b.rank(), "tensordot");
    const int64_t n = a.shape()[p], m = b.shape()[q];
    int& label = y.labels[static_cast<size_t>(q)];
    fits = (n == m || n < 0 || m < 0) && !contains(summed, p) &&
           label == kMaxRank + q;
    label = p;
    summed.push_back(p);
  }
  if (!fits) {
    throw errors::InvalidArgument(fmt::format(
        "tensordot: axes [{}] of a, which is {}, and [{}] of b, which is {}, "
        "do not pair{}; expected as many distinct axes of equal sizes",
        fmt::join(axes.of_a, ","), a.shape().str(), fmt::join(axes.of_b, ","),
        b.shape().str(), where_text(nullptr, site)));
  }
  Labels kept;
  for (const Labelled* t : {&x, &y}) {
    for (int label : t->labels) {
      if (!contains(summed, label)) kept.push_back(label);
    }
  }
  return contract("tensordot", x, y, kept, site).t;
}

namespace linalg {

Tensor matvec(const Tensor& a, const Tensor& b, bool transpose_a, Site site) {
  const Tensor column = expand_dims(b, -1, site);
  const Tensor y = matmul(a, column, {.transpose_a = transpose_a}, site);
  return squeeze(y, {-1}, site);
}

Tensor cross(const Tensor& a, const Tensor& b, Site site) {
  for (const Tensor* t : {&a, &b}) {
    const int rank = t->rank();
    if (rank > 0 && (t->shape()[rank - 1] == 3)) continue;
    throw errors::InvalidArgument(
        fmt::format("cross: an operand is {}{}; expected [..., 3]",
                    t->shape().str(), where_text(nullptr, site)));
  }
  const Tensors x = unstack(a, -1, site), y = unstack(b, -1, site);
  return stack({x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2],
                x[0] * y[1] - x[1] * y[0]},
               -1, site);
}

}  // namespace linalg

}  // namespace berth
