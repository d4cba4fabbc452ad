// Batches that threads put together: what a batch is made of is collected as
// one element, [element 0's components, element 1's, ..., how many, first
// number], which a parallel map makes the batch of.

#include "data/batch_base.h"
#include "data/pass_state.h"
#include "data/stack.h"

namespace berth::data {

namespace {

using Serial = std::shared_ptr<const CollectNode>;

class PartsNode : public CollectNode {
 public:
  explicit PartsNode(const Serial& serial)
      : CollectNode("batch", serial->dataset(),
                    static_cast<int64_t>(serial->size()),
                    serial->drop_remainder(), serial->site()) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  void make(std::span<const Tensors> elements, int64_t first,
            Tensors* out) const override {
    check_components(*this, elements, first);
    out->clear();
    for (const Tensors& element : elements) {
      out->insert(out->end(), element.begin(), element.end());
    }
    out->push_back(int64_scalar(static_cast<int64_t>(elements.size())));
    out->push_back(int64_scalar(first));
  }
};

// An indexed dataset need only give the numbers of its rows.
class RowNumbersStream : public TransformStream<PartsNode, int64_t, Tensors> {
 public:
  using TransformStream::TransformStream;
  bool next(Tensors* out) override {
    std::vector<int64_t> numbers;
    for (int64_t n = 0; source_ && numbers.size() < node_.size();) {
      if (source_->next(&n)) {
        numbers.push_back(n);
      } else {
        source_.reset();
      }
    }
    if (!node_.wanted(numbers.size())) return false;
    *out = {int64_vector(numbers)};
    return true;
  }
  void state(PassState& s) override {
    s.begin(node_);
    s.until_end(source_);
  }
};

std::unique_ptr<ElementStream> PartsNode::elements(const PassInfo& pass) const {
  if (parent().rows() == nullptr) return CollectNode::elements(pass);
  return std::make_unique<RowNumbersStream>(*this, pass);
}

Tensors put_together(const CollectNode& node, const Tensors& parts) {
  Tensors batch;
  if (const RowSource* rows = node.parent().rows()) {
    const auto numbers = parts[0].to_vector<int64_t>();
    rows->gather(numbers, &batch);
    return batch;
  }
  const auto count =
      static_cast<size_t>(parts[parts.size() - 2].item<int64_t>());
  const size_t width = (parts.size() - 2) / count;
  std::vector<Tensors> elements(count);
  for (size_t i = 0; i < count; ++i) {
    const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(i * width);
    elements[i].assign(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  node.make(elements, parts.back().item<int64_t>(), &batch);
  return batch;
}

// Reads the parallel form; everything else is the serial one's.
class ParallelBatchNode : public Transform {
 public:
  ParallelBatchNode(const Serial& serial, Dataset parallel)
      : Transform("batch", serial->site(), Dataset(serial)),
        parallel_(std::move(parallel)) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return parallel_.node().open(pass);
  }
  std::vector<const Node*> inputs() const override {
    return {&parallel_.node()};
  }

 private:
  Dataset parallel_;
};

}  // namespace

Dataset in_parallel(Serial serial, const BatchOptions& options) {
  if (options.num_parallel_calls == 0) return Dataset(serial);
  const Dataset parts = make_dataset<PartsNode>(serial);
  const Dataset parallel =
      parts.map(MapFunction([serial](const Tensors& e) {
                  return put_together(*serial, e);
                }),
                {.num_parallel_calls = options.num_parallel_calls,
                 .deterministic = options.deterministic},
                serial->site());
  return make_dataset<ParallelBatchNode>(serial, parallel);
}

}  // namespace berth::data
