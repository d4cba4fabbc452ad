// Dataset::ragged_batch.

#include <fmt/format.h>

#include "base/where.h"
#include "data/batch_base.h"
#include "data/flatten.h"
#include "data/stack.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

// A component is ragged when its first dimension is not known beforehand.
class RaggedNode : public CollectNode {
 public:
  RaggedNode(const Dataset& parent, int64_t size, bool drop_remainder,
             Site site)
      : CollectNode("ragged_batch", parent, size, drop_remainder, site) {}
  void make(std::span<const Tensors> elements, int64_t first,
            Tensors* out) const override;
  const std::vector<TensorSpec>& specs() const override;
  // The splits of "text" are "text/row_splits".
  NamesRef names() const override {
    const NamesRef before = parent().names();
    if (!before) return nullptr;
    Names all;
    for (size_t c = 0; c < before->size(); ++c) {
      all.push_back((*before)[c]);
      if (ragged(c)) all.push_back((*before)[c] + "/row_splits");
    }
    return std::make_shared<const Names>(std::move(all));
  }

 private:
  bool ragged(size_t c) const {
    const Shape& shape = parent().specs()[c].shape;
    return shape.rank() > 0 && shape[0] < 0;
  }
  LazySpecs specs_;
};

// The rows of all elements one after the other.
Tensor joined_rows(const Node& node, std::span<const Tensors> elements,
                   size_t c, int64_t first, int64_t rows) {
  Shape shape = elements[0][c].shape();
  for (size_t i = 1; i < elements.size(); ++i) {
    for (int d = 1; d < shape.rank(); ++d) {
      if (elements[i][c].shape()[d] == shape[d]) continue;
      refuse(node.where(),
             fmt::format("component {} of element {} is {}, in the first of "
                         "its batch it is {}; expected shapes that differ in "
                         "their first dimension alone: use padded_batch",
                         c, first + static_cast<int64_t>(i),
                         elements[i][c].spec().str(),
                         elements[0][c].spec().str()));
    }
  }
  shape[0] = rows;
  if (elements[0][c].dtype() == string_) {
    std::vector<std::string> all;
    for (const Tensors& e : elements) {
      for (std::string& s : strings_of(e[c])) all.push_back(std::move(s));
    }
    return make_strings(all, shape);
  }
  Tensor t = make_batch(elements[0][c].dtype(), shape);
  std::byte* to = t.impl()->data();
  for (const Tensors& e : elements) {
    e[c].copy_to(to, node.site());
    to += e[c].impl()->size_bytes();
  }
  return t;
}

void RaggedNode::make(std::span<const Tensors> elements, int64_t first,
                      Tensors* out) const {
  check_components(*this, elements, first);
  out->clear();
  std::vector<Tensors> column(elements.size());
  for (size_t c = 0; c < elements[0].size(); ++c) {
    if (!ragged(c)) {
      for (size_t i = 0; i < elements.size(); ++i) {
        column[i] = {elements[i][c]};
      }
      Tensors dense;
      stack(*this, column, first, &dense);
      out->push_back(std::move(dense[0]));
      continue;
    }
    Tensor splits =
        make_batch(int64, Shape{static_cast<int64_t>(elements.size()) + 1});
    auto* at = reinterpret_cast<int64_t*>(splits.impl()->data());
    at[0] = 0;
    for (size_t i = 0; i < elements.size(); ++i) {
      at[i + 1] = at[i] + elements[i][c].shape()[0];
    }
    out->push_back(joined_rows(*this, elements, c, first, at[elements.size()]));
    out->push_back(std::move(splits));
  }
}

const std::vector<TensorSpec>& RaggedNode::specs() const {
  return specs_.get([&] {
    const int64_t size = known_size();
    const auto& before = parent().specs();
    std::vector<TensorSpec> all;
    for (size_t c = 0; c < before.size(); ++c) {
      all.push_back(before[c]);
      if (!ragged(c)) {
        all.back().shape = batched(before[c].shape, size);
      } else {
        all.push_back({Shape{size < 0 ? kUnknownDim : size + 1}, int64, {}});
      }
    }
    return all;
  });
}

}  // namespace

Dataset Dataset::ragged_batch(int64_t size, const BatchOptions& options,
                              Site site) const {
  check_batch_size("ragged_batch", size, site);
  return in_parallel(std::make_shared<const RaggedNode>(
                         *this, size, options.drop_remainder, site),
                     options);
}

namespace {

std::string ragged_where(Site site) {
  return call_text("ragged_to_tensor", site);
}

// Row numbers that rise from 0 to the number of rows.
std::vector<int64_t> checked_splits(const Tensor& values, const Tensor& splits,
                                    Site site) {
  if (splits.dtype() != int64 || splits.rank() != 1 || splits.shape()[0] < 1 ||
      values.rank() < 1) {
    refuse(ragged_where(site),
           fmt::format("values is {}, row_splits {}; expected values of at "
                       "least one dimension and row_splits int64[n + 1]",
                       values.spec().str(), splits.spec().str()));
  }
  std::vector<int64_t> at = splits.to_vector<int64_t>();
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t least = i == 0 ? 0 : at[i - 1];
    if (at[i] >= least && at[i] <= values.shape()[0]) continue;
    refuse(ragged_where(site),
           fmt::format("row_splits {} is {}; expected {} to {}", i, at[i],
                       least, values.shape()[0]));
  }
  if (at[0] != 0 || at.back() != values.shape()[0]) {
    refuse(ragged_where(site),
           fmt::format("row_splits goes from {} to {}; expected 0 to {}", at[0],
                       at.back(), values.shape()[0]));
  }
  return at;
}

}  // namespace

Tensor ragged_to_tensor(const Tensor& values, const Tensor& row_splits,
                        const Tensor& default_value, Site site) {
  const auto at = checked_splits(values, row_splits, site);
  if (at.size() == 1) {
    Shape none = values.shape();
    none.insert(0, 0);
    none[1] = 0;
    return values.dtype() == string_
               ? make_strings({}, none)
               : make_tensor(host_device(), values.dtype(), none);
  }
  std::vector<Tensors> rows;
  for (size_t i = 0; i + 1 < at.size(); ++i) {
    rows.push_back({values[{slice(at[i], at[i + 1])}]});
  }
  const auto n = static_cast<int64_t>(rows.size());
  PaddedBatchOptions options;
  if (default_value.defined()) options.padding_values = {default_value};
  return collected("ragged_to_tensor", site, std::move(rows), {values.spec()})
      .padded_batch(n, options, site)
      .get_single_element(site)[0];
}

}  // namespace berth::data
