// Dataset::batch.

#include "data/batch_base.h"
#include "data/pass_state.h"
#include "data/stack.h"
#include "data/stage_times.h"

namespace berth::data {

namespace {

class BatchNode : public CollectNode {
 public:
  BatchNode(const Dataset& parent, int64_t size, const BatchOptions& options,
            Site site)
      : CollectNode("batch", parent, size, options.drop_remainder, site) {}

  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  void make(std::span<const Tensors> elements, int64_t first,
            Tensors* out) const override {
    stack(*this, elements, first, out);
  }
  // Not stored: the parent may have to compute an element for its own.
  const std::vector<TensorSpec>& specs() const override {
    return specs_.get([&] { return batched(parent().specs(), known_size()); });
  }

 private:
  LazySpecs specs_;
};

// Batches of an indexed dataset: gathers rows by their numbers.
class GatherStream : public TransformStream<BatchNode, int64_t, Tensors> {
 public:
  using TransformStream::TransformStream;
  bool next(Tensors* out) override {
    indices_.clear();
    int64_t index = 0;
    while (source_ && indices_.size() < node_.size()) {
      if (!source_->next(&index)) {
        source_.reset();
        break;
      }
      indices_.push_back(index);
    }
    if (!node_.wanted(indices_.size())) return false;
    node_.parent().rows()->gather(indices_, out);
    return true;
  }
  void state(PassState& s) override {
    s.begin(node_);
    s.until_end(source_);
  }

 private:
  std::vector<int64_t> indices_;
};

std::unique_ptr<ElementStream> BatchNode::elements(const PassInfo& pass) const {
  if (parent().rows() != nullptr) {
    return std::make_unique<GatherStream>(*this, pass);
  }
  // A reader that goes on after an error wants the other elements of the batch.
  auto made = pass.keep_going
                  ? nullptr
                  : parent().batches(pass, size(), drop_remainder());
  return made ? timed(parent(), std::move(made)) : CollectNode::elements(pass);
}

}  // namespace

Dataset Dataset::batch(int64_t size, const BatchOptions& options,
                       Site site) const {
  check_batch_size("batch", size, site);
  return in_parallel(
      std::make_shared<const BatchNode>(*this, size, options, site), options);
}

}  // namespace berth::data
