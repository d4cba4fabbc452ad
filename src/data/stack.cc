#include "data/stack.h"

#include <fmt/format.h>

#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

Tensor stacked_strings(std::span<const Tensors> elements, size_t c) {
  std::vector<std::string> all;
  for (const Tensors& element : elements) {
    for (std::string& s : strings_of(element[c])) all.push_back(std::move(s));
  }
  return make_strings(all, batched(elements[0][c].shape(),
                                   static_cast<int64_t>(elements.size())));
}

Tensor stacked(const Node& node, std::span<const Tensors> elements, size_t c) {
  const Tensor& first = elements[0][c];
  Tensor t =
      make_batch(first.dtype(),
                 batched(first.shape(), static_cast<int64_t>(elements.size())));
  std::byte* to = t.impl()->data();
  const size_t bytes = first.impl()->size_bytes();
  for (const Tensors& element : elements) {
    element[c].copy_to(to, node.site());
    to += bytes;
  }
  return t;
}

}  // namespace

void check_components(const Node& node, std::span<const Tensors> elements,
                      int64_t first) {
  const Tensors& a = elements[0];
  for (size_t i = 1; i < elements.size(); ++i) {
    const Tensors& b = elements[i];
    const int64_t number = first + static_cast<int64_t>(i);
    if (a.size() != b.size()) {
      refuse(node.where(),
             fmt::format("element {} has {} components, the first of its "
                         "batch has {}; expected equally many",
                         number, b.size(), a.size()));
    }
    for (size_t c = 0; c < a.size(); ++c) {
      if (a[c].dtype() == b[c].dtype() && a[c].rank() == b[c].rank()) continue;
      refuse(node.where(),
             fmt::format("component {} of element {} is {}, in the first of "
                         "its batch it is {}; expected equal dtypes and ranks",
                         c, number, b[c].spec().str(), a[c].spec().str()));
    }
  }
}

void stack(const Node& node, std::span<const Tensors> elements, int64_t first,
           Tensors* out) {
  const Tensors& a = elements[0];
  for (size_t i = 1; i < elements.size(); ++i) {
    const Tensors& b = elements[i];
    if (a.size() != b.size()) check_components(node, elements, first);
    for (size_t c = 0; c < a.size(); ++c) {
      if (a[c].dtype() == b[c].dtype() && a[c].shape() == b[c].shape()) {
        continue;
      }
      refuse(node.where(),
             fmt::format("component {} of element {} is {}, in the first of "
                         "its batch it is {}; expected equal shapes and "
                         "dtypes: map them to one shape first, or use "
                         "padded_batch or ragged_batch",
                         c, first + static_cast<int64_t>(i), b[c].spec().str(),
                         a[c].spec().str()));
    }
  }
  out->resize(a.size());
  for (size_t c = 0; c < a.size(); ++c) {
    (*out)[c] = a[c].dtype() == string_ ? stacked_strings(elements, c)
                                        : stacked(node, elements, c);
  }
}

std::vector<TensorSpec> first_specs(ElementStream& pass) {
  std::vector<TensorSpec> all;
  Tensors first;
  if (!pass.next(&first)) return all;
  for (const Tensor& t : first) all.push_back(t.spec());
  return all;
}

std::vector<TensorSpec> with_int64(std::vector<TensorSpec> specs) {
  specs.insert(specs.begin(), TensorSpec{Shape{}, int64, {}});
  return specs;
}

Tensor int64_scalar(int64_t value) {
  Tensor t = make_tensor(host_device(), int64, Shape{});
  *reinterpret_cast<int64_t*>(t.impl()->data()) = value;
  return t;
}

Tensor int64_vector(std::span<const int64_t> values) {
  Tensor t = make_tensor(host_device(), int64,
                         Shape{static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(),
            reinterpret_cast<int64_t*>(t.impl()->data()));
  return t;
}

TensorSpec joined_spec(const std::string& where, size_t component,
                       const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank()) {
    refuse(where, fmt::format("component {} is {} in one dataset and {} in "
                              "another; expected equal dtypes and ranks",
                              component, a.str(), b.str()));
  }
  TensorSpec joined = a;
  for (int i = 0; i < a.shape.rank(); ++i) {
    if (a.shape[i] != b.shape[i]) joined.shape[i] = kUnknownDim;
  }
  return joined;
}

}  // namespace berth::data
