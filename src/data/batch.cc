#include <fmt/format.h>

#include <mutex>

#include "data/pass_state.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor_impl.h"

namespace berth::data {

namespace {

class BatchNode : public Transform {
 public:
  BatchNode(const Dataset& parent, int64_t size, const BatchOptions& options,
            Site site)
      : Transform("batch", site, parent),
        size_(static_cast<size_t>(size)),
        drop_remainder_(options.drop_remainder) {}

  std::unique_ptr<ElementStream> elements(const Pass& pass) const override;
  int64_t cardinality() const override {
    const int64_t n = parent().cardinality();
    if (n < 0) return n;
    const int64_t size = static_cast<int64_t>(size_);
    return n / size + (drop_remainder_ || n % size == 0 ? 0 : 1);
  }
  // Not stored: the parent may have to compute an element for its own.
  const std::vector<TensorSpec>& specs() const override {
    std::call_once(once_, [&] {
      const int64_t n = parent().cardinality();
      const int64_t size = static_cast<int64_t>(size_);
      const bool all_full =
          drop_remainder_ || n == kInfinite || (n >= 0 && n % size == 0);
      for (TensorSpec spec : parent().specs()) {
        spec.shape = batched(spec.shape, all_full ? size : kUnknownDim);
        specs_.push_back(std::move(spec));
      }
    });
    return specs_;
  }

  size_t size() const { return size_; }
  bool wanted(size_t count) const {
    return count == size_ || (count > 0 && !drop_remainder_);
  }

 private:
  size_t size_;
  bool drop_remainder_;
  mutable std::once_flag once_;
  mutable std::vector<TensorSpec> specs_;
};

// Batches of an indexed dataset: gathers rows by their numbers.
class GatherStream : public ElementStream {
 public:
  GatherStream(const BatchNode* node, const Pass& pass)
      : node_(node),
        rows_(node->parent().rows()),
        source_(node->parent().indices(pass)) {}
  bool next(Tensors* out) override {
    indices_.clear();
    int64_t index = 0;
    while (source_ && indices_.size() < node_->size()) {
      if (!source_->next(&index)) {
        source_.reset();
        break;
      }
      indices_.push_back(index);
    }
    if (!node_->wanted(indices_.size())) return false;
    rows_->gather(indices_, out);
    return true;
  }
  void save(PassWriter& w) override {
    w.begin(*node_);
    save_source(w, source_);
  }
  void restore(PassReader& r) override {
    r.begin(*node_);
    restore_source(r, &source_);
  }

 private:
  const BatchNode* node_;
  const Rows* rows_;
  std::unique_ptr<IndexStream> source_;  // null at its end
  std::vector<int64_t> indices_;
};

// Batches of any other dataset: collects elements, then copies them.
class StackStream : public ElementStream {
 public:
  StackStream(const BatchNode* node, const Pass& pass)
      : node_(node), source_(node->parent().open(pass)) {}
  bool next(Tensors* out) override {
    // What a batch has stays there when an element fails and is left out.
    while (source_ && count_ < node_->size()) {
      if (count_ == elements_.size()) elements_.emplace_back();
      if (!source_->next(&elements_[count_])) {
        source_.reset();
        break;
      }
      check(count_);
      ++count_;
    }
    if (!node_->wanted(count_)) return false;
    stack(count_, out);
    for (Tensors& element : elements_) element.clear();
    first_ += static_cast<int64_t>(count_);
    count_ = 0;
    return true;
  }
  void save(PassWriter& w) override {
    w.begin(*node_);
    w.put(first_);
    w.put(count_);
    for (size_t i = 0; i < count_; ++i) w.put(elements_[i]);
    save_source(w, source_);
  }
  void restore(PassReader& r) override {
    r.begin(*node_);
    first_ = r.number(0);
    count_ = static_cast<size_t>(
        r.number(0, static_cast<int64_t>(node_->size()) - 1));
    elements_.resize(count_);
    for (Tensors& element : elements_) element = r.element();
    restore_source(r, &source_);
  }

 private:
  // Throws unless element `i` of the batch looks like element 0.
  void check(size_t i) const {
    const Tensors& a = elements_[0];
    const Tensors& b = elements_[i];
    const int64_t number = first_ + static_cast<int64_t>(i);
    if (a.size() != b.size()) {
      refuse(node_->where(),
             fmt::format("element {} has {} components, the first of its "
                         "batch has {}; expected equally many",
                         number, b.size(), a.size()));
    }
    for (size_t c = 0; c < a.size(); ++c) {
      if (a[c].dtype() == b[c].dtype() && a[c].shape() == b[c].shape()) {
        continue;
      }
      refuse(node_->where(),
             fmt::format("component {} of element {} is {}, in the first of "
                         "its batch it is {}; expected equal shapes and "
                         "dtypes: map them to one shape first",
                         c, number, b[c].spec().str(), a[c].spec().str()));
    }
  }

  void stack(size_t count, Tensors* out) const {
    const Tensors& first = elements_[0];
    out->resize(first.size());
    for (size_t c = 0; c < first.size(); ++c) {
      if (first[c].dtype() == string_) {
        (*out)[c] = stacked_strings(c, count);
        continue;
      }
      Tensor t =
          make_batch(first[c].dtype(),
                     batched(first[c].shape(), static_cast<int64_t>(count)));
      std::byte* to = t.impl()->data();
      const size_t bytes = first[c].impl()->size_bytes();
      for (size_t i = 0; i < count; ++i) {
        elements_[i][c].copy_to(to + i * bytes, node_->site());
      }
      (*out)[c] = std::move(t);
    }
  }

  Tensor stacked_strings(size_t c, size_t count) const {
    std::vector<std::string> all;
    for (size_t i = 0; i < count; ++i) {
      for (std::string& s : strings_of(elements_[i][c])) {
        all.push_back(std::move(s));
      }
    }
    return make_strings(
        all, batched(elements_[0][c].shape(), static_cast<int64_t>(count)));
  }

  const BatchNode* node_;
  std::unique_ptr<ElementStream> source_;  // null at its end
  std::vector<Tensors> elements_;          // storage is used again
  size_t count_ = 0;                       // of the batch at hand
  int64_t first_ = 0;                      // number of the batch's first
};

std::unique_ptr<ElementStream> BatchNode::elements(const Pass& pass) const {
  if (parent().rows() != nullptr) {
    return std::make_unique<GatherStream>(this, pass);
  }
  return std::make_unique<StackStream>(this, pass);
}

}  // namespace

Dataset Dataset::batch(int64_t size, const BatchOptions& options,
                       Site site) const {
  if (size < 1) {
    refuse(fmt::format("batch ({}:{})", site.file, site.line),
           fmt::format("size is {}; expected at least 1", size));
  }
  return make_dataset<BatchNode>(*this, size, options, site);
}

}  // namespace berth::data
