// Dataset::map with a function of many elements at once.

#include <fmt/format.h>

#include "data/row_transform.h"
#include "data/stack.h"
#include "data/user_call.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

// Calls a function of [n, ...] with the rows of a batch at once.
class VectorizedKernel : public RowKernel {
 public:
  VectorizedKernel(MapFunction fn, std::shared_ptr<const ResultNames> names)
      : fn_(std::move(fn)), names_(std::move(names)) {}
  NamesRef names(const Node& node) const override {
    return names_ ? names_->get([&] { specs(node); }) : nullptr;
  }

  const std::vector<TensorSpec>& specs(const Node& node) const override {
    return specs_.get([&] {
      std::stop_source stop;
      return first_specs(*node.open({.stop = stop.get_token(), .peek = true}));
    });
  }

  void run(const Node& node, const RowSource& rows,
           std::span<const int64_t> indices, std::span<const int64_t> elements,
           Tensors* out) const override {
    Tensors batch;
    rows.gather(indices, &batch);
    *out = call(node, batch, static_cast<int64_t>(indices.size()),
                elements.empty() ? 0 : elements[0]);
  }

  void run(const Node& node, const Tensors& element, int64_t number,
           Tensors* out) const override {
    Tensors batch;
    for (const Tensor& t : element) {
      batch.push_back(make_alias(t, batched(t.shape(), 1), 0));
    }
    *out = call(node, batch, 1, number);
    for (Tensor& t : *out) {
      Shape shape = t.shape();
      shape.erase(0);
      t = make_alias(t, shape, 0);
    }
  }

 private:
  Tensors call(const Node& node, const Tensors& batch, int64_t n,
               int64_t number) const {
    Tensors out = call_map(node, number, fn_, batch);
    for (size_t c = 0; c < out.size(); ++c) {
      if (out[c].rank() > 0 && out[c].shape()[0] == n) continue;
      refuse(node.where(),
             fmt::format("component {} of what the function returned is {} for "
                         "{} elements; expected as many on top of each other: "
                         "[{}, ...], as .vectorized = true says",
                         c, out[c].spec().str(), n, n));
    }
    return out;
  }

  MapFunction fn_;
  std::shared_ptr<const ResultNames> names_;
  LazySpecs specs_;
};

}  // namespace

std::shared_ptr<const RowKernel> vectorized_kernel(
    MapFunction fn, std::shared_ptr<const ResultNames> names) {
  return std::make_shared<VectorizedKernel>(std::move(fn), std::move(names));
}

}  // namespace berth::data
