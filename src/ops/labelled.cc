#include "ops/labelled.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth {

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

namespace {

int place_of(const Labels& labels, int label) {
  return static_cast<int>(std::find(labels.begin(), labels.end(), label) -
                          labels.begin());
}

Labels joined(Labels a, const Labels& b, const Labels& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

int64_t dim_of(const Labelled& x, int label) {
  return x.t.shape()[place_of(x.labels, label)];
}

// The size of axes merged into one; unknown when one of several is.
int64_t merged(const Labelled& x, const Labels& group) {
  if (group.size() == 1) return dim_of(x, group[0]);
  Shape dims;
  for (int label : group) dims.push_back(dim_of(x, label));
  return dims.num_elements();
}

Tensor reshaped(const char* what, const Tensor& t, const Shape& shape,
                Site site) {
  if (t.shape() == shape) return t;
  const auto unknown =
      std::count(shape.begin(), shape.end(), int64_t{kUnknownDim});
  if (unknown > 1) {
    throw errors::InvalidArgument(fmt::format(
        "{}: axes of {} are merged to {}{}; expected at most one that is "
        "not known: give the signature sizes",
        what, t.shape().str(), shape.str(), where_text(nullptr, site)));
  }
  return reshape(t, shape, site);
}

struct Matrix {
  Tensor t;
  bool transposed;
};

// `x` as [batch..., rows, columns], or transposed when it lies so already.
Matrix as_matrix(const char* what, const Labelled& x, const Labels& batch,
                 const Labels& rows, const Labels& columns, Site site) {
  const bool transposed = x.labels == joined(batch, columns, rows) &&
                          x.labels != joined(batch, rows, columns);
  const Labels& first = transposed ? columns : rows;
  const Labels& second = transposed ? rows : columns;
  Shape shape;
  for (int label : batch) shape.push_back(dim_of(x, label));
  shape.push_back(merged(x, first));
  shape.push_back(merged(x, second));
  const Tensor t = permuted(x, joined(batch, first, second), site);
  if (first.size() == 1 && second.size() == 1) return {t, transposed};
  return {reshaped(what, t, shape, site), transposed};
}

// `x` with its axes in the order of `labels`, 1 where it lacks one.
Tensor aligned(const Labelled& x, const Labels& labels, Site site) {
  Labels own;
  for (int label : labels) {
    if (contains(x.labels, label)) own.push_back(label);
  }
  Tensor t = permuted(x, own, site);
  if (t.rank() == 0) return t;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (contains(own, labels[i])) continue;
    t = expand_dims(t, static_cast<int64_t>(i), site);
  }
  return t;
}

}  // namespace

Tensor permuted(const Labelled& x, const Labels& labels, Site site) {
  if (x.labels == labels) return x.t;
  std::vector<int64_t> perm;
  for (int label : labels) perm.push_back(place_of(x.labels, label));
  return transpose(x.t, perm, site);
}

Labelled summed(const Labelled& x, const Labels& kept, Site site) {
  std::vector<int64_t> axes;
  Labels labels;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (contains(kept, x.labels[i])) {
      labels.push_back(x.labels[i]);
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (axes.empty()) return x;
  return {math::reduce_sum(x.t, {.axis = axes}, site), labels};
}

Labelled contract(const char* what, const Labelled& left, const Labelled& right,
                  const Labels& kept, Site site) {
  const Labelled a = summed(left, joined(kept, right.labels, {}), site);
  const Labelled b = summed(right, joined(kept, left.labels, {}), site);
  Labels batch, inner, rows, columns;
  for (int label : a.labels) {
    const bool shared = contains(b.labels, label);
    (!shared ? rows : contains(kept, label) ? batch : inner).push_back(label);
  }
  for (int label : b.labels) {
    if (!contains(a.labels, label)) columns.push_back(label);
  }
  const Labels result = joined(batch, rows, columns);
  if (inner.empty()) {
    return {math::multiply(aligned(a, result, site), aligned(b, result, site),
                           site),
            result};
  }
  const Matrix x = as_matrix(what, a, batch, rows, inner, site);
  const Matrix y = as_matrix(what, b, batch, inner, columns, site);
  const Tensor product =
      matmul(x.t, y.t,
             {.transpose_a = x.transposed, .transpose_b = y.transposed}, site);
  if (rows.size() == 1 && columns.size() == 1) return {product, result};
  Shape shape;
  for (size_t i = 0; i < batch.size(); ++i) {
    shape.push_back(product.shape()[static_cast<int>(i)]);
  }
  for (int label : rows) shape.push_back(dim_of(a, label));
  for (int label : columns) shape.push_back(dim_of(b, label));
  return {reshaped(what, product, shape, site), result};
}

}  // namespace berth
