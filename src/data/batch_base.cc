#include "data/batch_base.h"

#include <fmt/format.h>

#include "base/where.h"
#include "data/pass_state.h"

namespace berth::data {

namespace {

class CollectStream : public ElementStream {
 public:
  CollectStream(const CollectNode& node, const PassInfo& pass)
      : node_(node), source_(node.parent().open(pass)) {}
  bool next(Tensors* out) override {
    // What a batch has stays there when an element fails and is left out.
    while (source_ && count_ < node_.size()) {
      if (count_ == elements_.size()) elements_.emplace_back();
      if (!source_->next(&elements_[count_])) {
        source_.reset();
        break;
      }
      ++count_;
    }
    if (!node_.wanted(count_)) return false;
    const size_t count = std::exchange(count_, 0);
    const int64_t first = first_;
    first_ += static_cast<int64_t>(count);
    node_.make({elements_.data(), count}, first, out);
    for (Tensors& element : elements_) element.clear();
    return true;
  }
  void save(PassWriter& w) override {
    w.begin(node_);
    w.put(first_);
    w.put(count_);
    for (size_t i = 0; i < count_; ++i) w.put(elements_[i]);
    save_source(w, source_);
  }
  void restore(PassReader& r) override {
    r.begin(node_);
    first_ = r.number(0);
    count_ = static_cast<size_t>(
        r.number(0, static_cast<int64_t>(node_.size()) - 1));
    for (size_t i = 0; i < count_; ++i) elements_.push_back(r.element());
    restore_source(r, &source_);
  }

 private:
  const CollectNode& node_;
  std::unique_ptr<ElementStream> source_;  // null at its end
  std::vector<Tensors> elements_;          // storage is used again
  size_t count_ = 0;                       // of the current batch
  int64_t first_ = 0;                      // number of the batch's first
};

}  // namespace

std::unique_ptr<ElementStream> CollectNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<CollectStream>(*this, pass);
}

int64_t CollectNode::cardinality() const {
  const int64_t n = parent().cardinality();
  if (n < 0) return n;
  const int64_t size = static_cast<int64_t>(size_);
  return n / size + (drop_remainder_ || n % size == 0 ? 0 : 1);
}

int64_t CollectNode::known_size() const {
  const int64_t n = parent().cardinality();
  const int64_t size = static_cast<int64_t>(size_);
  const bool all =
      drop_remainder_ || n == kInfinite || (n >= 0 && n % size == 0);
  return all ? size : kUnknownDim;
}

void check_batch_size(const char* what, int64_t size, Site site) {
  if (size >= 1) return;
  refuse(call_text(what, site),
         fmt::format("size is {}; expected at least 1", size));
}

}  // namespace berth::data
