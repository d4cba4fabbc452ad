// Dataset::padded_batch.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/where.h"
#include "berth/ops/math.h"
#include "data/batch_base.h"
#include "data/map.h"
#include "data/stack.h"
#include "data/user_call.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

class PaddedNode : public CollectNode {
 public:
  PaddedNode(const Dataset& parent, int64_t size,
             const PaddedBatchOptions& options, Site site)
      : CollectNode("padded_batch", parent, size, options.drop_remainder, site),
        shapes_(options.padded_shapes),
        values_(options.padding_values) {}
  void make(std::span<const Tensors> elements, int64_t first,
            Tensors* out) const override;
  const std::vector<TensorSpec>& specs() const override;

 private:
  Shape shape_of(std::span<const Tensors> elements, size_t c,
                 int64_t first) const;
  // A scalar of that dtype, or an empty handle for zeros.
  Tensor value_of(size_t c, DType dtype) const;
  void check_count(size_t components) const;

  std::vector<Shape> shapes_;
  Tensors values_;
  LazySpecs specs_;
};

// Calls body(from, to) for each row along the last dimension of `from`: the
// numbers of its first element there and in the larger shape `to`.
template <class F>
void each_row(const Shape& from, const Shape& to, const F& body) {
  const int rank = from.rank();
  if (from.num_elements() == 0) return;
  const int64_t width = rank == 0 ? 1 : from[rank - 1];
  const int64_t rows = from.num_elements() / width;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row, at = 0, stride = rank == 0 ? 1 : to[rank - 1];
    for (int d = rank - 2; d >= 0; --d) {
      at += rest % from[d] * stride;
      rest /= from[d];
      stride *= to[d];
    }
    body(row * width, at, width);
  }
}

void fill_bytes(std::byte* to, size_t bytes, const Tensor& value) {
  const size_t size = value.defined() ? size_of(value.dtype()) : 0;
  if (size == 0) {
    std::memset(to, 0, bytes);
    return;
  }
  std::byte one[16];
  value.copy_to(one);
  for (size_t i = 0; i < bytes; i += size) std::memcpy(to + i, one, size);
}

Tensor padded_strings(std::span<const Tensors> elements, size_t c,
                      const Shape& shape, const Tensor& value) {
  const auto n = static_cast<size_t>(shape.num_elements());
  std::vector<std::string> all(n * elements.size(),
                               value.defined() ? strings_of(value)[0] : "");
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto from = strings_of(elements[i][c]);
    each_row(elements[i][c].shape(), shape,
             [&](int64_t a, int64_t b, int64_t width) {
               std::copy_n(from.begin() + a, width,
                           all.begin() + static_cast<int64_t>(i * n) + b);
             });
  }
  return make_strings(all,
                      batched(shape, static_cast<int64_t>(elements.size())));
}

Tensor padded_numbers(std::span<const Tensors> elements, size_t c,
                      const Shape& shape, const Tensor& value, Site site) {
  const DType dtype = elements[0][c].dtype();
  Tensor t =
      make_batch(dtype, batched(shape, static_cast<int64_t>(elements.size())));
  const auto size = static_cast<int64_t>(size_of(dtype));
  const int64_t bytes = shape.num_elements() * size;
  std::byte* to = t.impl()->data();
  std::vector<std::byte> from;
  for (const Tensors& element : elements) {
    const Tensor& e = element[c];
    if (e.shape() == shape) {
      e.copy_to(to, site);
    } else {
      fill_bytes(to, static_cast<size_t>(bytes), value);
      from.resize(e.impl()->size_bytes());
      e.copy_to(from.data(), site);
      each_row(e.shape(), shape, [&](int64_t a, int64_t b, int64_t width) {
        std::memcpy(to + b * size, from.data() + a * size,
                    static_cast<size_t>(width * size));
      });
    }
    to += bytes;
  }
  return t;
}

void PaddedNode::check_count(size_t components) const {
  if (!shapes_.empty() && shapes_.size() != components) {
    refuse(where(), fmt::format("there are {} padded_shapes for {} components; "
                                "expected one for each, or none",
                                shapes_.size(), components));
  }
  if (values_.size() > 1 && values_.size() != components) {
    refuse(where(), fmt::format("there are {} padding_values for {} "
                                "components; expected one for each, or one",
                                values_.size(), components));
  }
}

Shape PaddedNode::shape_of(std::span<const Tensors> elements, size_t c,
                           int64_t first) const {
  const int rank = elements[0][c].rank();
  Shape shape = elements[0][c].shape();
  const bool given = !shapes_.empty();
  if (given && shapes_[c].rank() != rank) {
    refuse(where(),
           fmt::format("padded_shapes {} is {}, component {} is {}; "
                       "expected equal ranks",
                       c, shapes_[c].str(), c, elements[0][c].spec().str()));
  }
  for (int d = 0; d < rank; ++d) {
    int64_t longest = 0;
    for (const Tensors& e : elements) {
      longest = std::max(longest, e[c].shape()[d]);
    }
    shape[d] = longest;
    if (!given || shapes_[c][d] < 0) continue;
    shape[d] = shapes_[c][d];
    if (longest <= shape[d]) continue;
    for (size_t i = 0; i < elements.size(); ++i) {
      if (elements[i][c].shape()[d] <= shape[d]) continue;
      refuse(where(),
             fmt::format("component {} of element {} is {}; expected "
                         "to fit padded_shapes {}",
                         c, first + static_cast<int64_t>(i),
                         elements[i][c].spec().str(), shapes_[c].str()));
    }
  }
  return shape;
}

Tensor PaddedNode::value_of(size_t c, DType dtype) const {
  if (values_.empty()) return {};
  const bool shared = values_.size() == 1;
  const Tensor& value = values_[shared ? 0 : c];
  if (!value.defined() || value.dtype() == dtype) return value;
  // One for all: those of another kind are padded with zeros.
  if (value.dtype() == string_ || dtype == string_ || dtype == bool_) {
    if (shared) return {};
    refuse(where(), fmt::format("padding value {} is {}, the component is {}; "
                                "expected equal dtypes",
                                c, value.spec().str(), name_of(dtype)));
  }
  UserCall eager;
  return math::cast(value, dtype, site());
}

void PaddedNode::make(std::span<const Tensors> elements, int64_t first,
                      Tensors* out) const {
  check_components(*this, elements, first);
  check_count(elements[0].size());
  out->resize(elements[0].size());
  for (size_t c = 0; c < out->size(); ++c) {
    const DType dtype = elements[0][c].dtype();
    const Shape shape = shape_of(elements, c, first);
    const Tensor value = value_of(c, dtype);
    (*out)[c] = dtype == string_
                    ? padded_strings(elements, c, shape, value)
                    : padded_numbers(elements, c, shape, value, site());
  }
}

// Its shapes are those of the first element.
bool has_map(const Node& node) {
  if (dynamic_cast<const MapNode*>(&node)) return true;
  const auto inputs = node.inputs();
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Node* n) { return has_map(*n); });
}

const std::vector<TensorSpec>& PaddedNode::specs() const {
  return specs_.get([&] {
    std::vector<TensorSpec> all = parent().specs();
    check_count(all.size());
    for (size_t c = 0; c < all.size(); ++c) {
      Shape& shape = all[c].shape;
      if (!shapes_.empty()) {
        shape = shapes_[c];
        for (int d = 0; d < shape.rank(); ++d) {
          if (shape[d] < 0) shape[d] = kUnknownDim;
        }
      } else if (has_map(parent())) {
        for (int d = 0; d < shape.rank(); ++d) shape[d] = kUnknownDim;
      }
    }
    return batched(std::move(all), known_size());
  });
}

}  // namespace

Dataset Dataset::padded_batch(int64_t size, const PaddedBatchOptions& options,
                              Site site) const {
  check_batch_size("padded_batch", size, site);
  for (const Tensor& value : options.padding_values) {
    if (!value.defined() || (value.rank() == 0 && !value.is_symbolic())) {
      continue;
    }
    refuse(call_text("padded_batch", site),
           fmt::format("a padding value is {}; expected scalars with values",
                       value.spec().str()));
  }
  return make_dataset<PaddedNode>(*this, size, options, site);
}

}  // namespace berth::data
