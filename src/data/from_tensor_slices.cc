// Dataset::from_tensor_slices and range.

#include <fmt/format.h>

#include "base/needs_values.h"
#include "base/where.h"
#include "data/pass_state.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::data {

namespace {

// Counts 0, 1, ... n - 1.
class Counter : public IndexStream {
 public:
  Counter(const Node* node, int64_t n) : node_(node), n_(n) {}
  bool next(int64_t* out) override {
    if (at_ == n_) return false;
    *out = at_++;
    return true;
  }
  void state(PassState& s) override {
    s.begin(*node_);
    s(at_, 0, n_);
  }

 private:
  const Node* node_;
  int64_t n_;
  int64_t at_ = 0;
};

class SlicesNode : public Node {
 public:
  SlicesNode(const char* what, Site site, std::unique_ptr<const RowSource> rows,
             NamesRef names = nullptr)
      : Node(what, site), rows_(std::move(rows)), names_(std::move(names)) {}
  NamesRef names() const override { return names_; }
  const RowSource* rows() const override { return rows_.get(); }
  std::unique_ptr<IndexStream> indices(const PassInfo&) const override {
    return std::make_unique<Counter>(this, rows_->count());
  }
  int64_t cardinality() const override { return rows_->count(); }
  const std::vector<TensorSpec>& specs() const override {
    return rows_->specs();
  }

 private:
  std::unique_ptr<const RowSource> rows_;
  NamesRef names_;
};

// Returns the values of `t` as they are now, on the host.
Tensor on_host(const Tensor& t) {
  Device& host = host_device();
  Block* block = t.impl()->block;
  if (block->device != &host) {
    Tensor copy = copy_to_device(t, host);
    synchronize(copy.impl()->block->ready);
    return copy;
  }
  if (!block->borrowed.load()) return t;
  // A Variable's writer may move these bytes: rows need a place of their own.
  Tensor copy = make_tensor(host, t.dtype(), t.shape());
  t.copy_to(copy.impl()->data());
  return copy;
}

void check_component(const Tensors& all, size_t i, const std::string& where) {
  const Tensor& t = all[i];
  if (!t.defined()) {
    refuse(where, fmt::format("component {} is an empty Tensor; expected one "
                              "with values",
                              i));
  }
  if (t.is_symbolic()) {
    throw Untraceable<errors::FailedPrecondition>(fmt::format(
        "{}: component {} belongs to a traced function and has no values "
        "yet; make the dataset outside and pass its elements to the function",
        where, i));
  }
  if (t.dtype() == resource) {
    refuse(where, fmt::format("component {} is a Variable's handle; expected "
                              "a tensor: pass its value()",
                              i));
  }
  if (t.rank() == 0) {
    refuse(where, fmt::format("component {} is a scalar; expected a first "
                              "dimension to cut along",
                              i));
  }
  if (t.shape()[0] != all[0].shape()[0]) {
    refuse(where,
           fmt::format("component {} has {} rows (shape {}), component 0 has "
                       "{} (shape {}); expected equal first dimensions",
                       i, t.shape()[0], t.shape().str(), all[0].shape()[0],
                       all[0].shape().str()));
  }
}

}  // namespace

Dataset Dataset::from_tensor_slices(const Tensors& components, Site site) {
  return from_tensor_slices(Element(components, nullptr), site);
}

Dataset Dataset::from_tensor_slices(const Element& components, Site site) {
  const std::string where = call_text("from_tensor_slices", site);
  if (components.empty()) {
    refuse(where, "no components were given; expected at least one tensor");
  }
  Tensors host;
  for (size_t i = 0; i < components.size(); ++i) {
    check_component(components, i, where);
    host.push_back(on_host(components[i]));
  }
  return make_dataset<SlicesNode>(
      "from_tensor_slices", site, std::make_unique<TensorRows>(std::move(host)),
      components.names().empty() ? nullptr : components.shared_names());
}

Dataset Dataset::range(int64_t stop, Site site) {
  return range(0, stop, 1, site);
}

Dataset Dataset::range(int64_t start, int64_t stop, int64_t step, Site site) {
  const std::string where = call_text("range", site);
  if (step == 0) refuse(where, "step is 0; expected another number");
  // In unsigned numbers, where the distance cannot overflow.
  const uint64_t a = static_cast<uint64_t>(start);
  const uint64_t b = static_cast<uint64_t>(stop);
  uint64_t n = 0;
  if (step > 0 && start < stop)
    n = (b - a - 1) / static_cast<uint64_t>(step) + 1;
  if (step < 0 && start > stop)
    n = (a - b - 1) / (0 - static_cast<uint64_t>(step)) + 1;
  if (n > static_cast<uint64_t>(INT64_MAX)) {
    refuse(where, fmt::format("{} to {} by {} has {} elements; expected fewer "
                              "than 2^63",
                              start, stop, step, n));
  }
  return make_dataset<SlicesNode>(
      "range", site,
      std::make_unique<RangeRows>(start, step, static_cast<int64_t>(n)));
}

}  // namespace berth::data
