// The parts of interleave: the node, and its stream with threads of its own.

#ifndef BERTH_DATA_INTERLEAVE_H_
#define BERTH_DATA_INTERLEAVE_H_

#include <memory>
#include <vector>

#include "data/component_names.h"
#include "data/pass_state.h"

namespace berth::data {

class InterleaveNode : public Transform {
 public:
  InterleaveNode(const char* what, const Dataset& parent, DatasetFunction fn,
                 const InterleaveOptions& options, Site site);
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  // Those of the first dataset.
  const std::vector<TensorSpec>& specs() const override;
  int64_t cardinality() const override {
    return parent().cardinality() == 0 ? 0 : kUnknown;
  }

  NamesRef names() const override {
    return names_.get([&] { specs(); });
  }

  // What the first dataset says: one that reads files is made of a name.
  std::optional<int64_t> num_files() const override;
  const Node* file_names() const override { return &parent(); }

  // The dataset that the function makes of element `number`.
  Dataset make(const Tensors& element, int64_t number) const;
  size_t cycle_length() const {
    return static_cast<size_t>(options_.cycle_length);
  }
  int64_t block_length() const { return options_.block_length; }
  int threads() const { return static_cast<int>(options_.num_parallel_calls); }
  // Whether threads() is what AUTOTUNE may start at most.
  bool autotune() const { return autotune_; }
  bool deterministic() const { return options_.deterministic; }

 private:
  DatasetFunction fn_;
  InterleaveOptions options_;
  bool autotune_;
  LazySpecs specs_;
  mutable bool reads_files_ = false;
  LearntNames names_;
};

// Reads the datasets on node.threads() threads, so many at once, and as many
// more that come after them.
std::unique_ptr<ElementStream> parallel_interleave(const InterleaveNode& node,
                                                   const PassInfo& pass);

}  // namespace berth::data

#endif  // BERTH_DATA_INTERLEAVE_H_
