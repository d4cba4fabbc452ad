// unbatch and rebatch: batches split along their first dimension.

#include <fmt/format.h>

#include <mutex>

#include "base/where.h"
#include "data/pass_state.h"
#include "data/stack.h"

namespace berth::data {

namespace {

class UnbatchNode : public Transform {
 public:
  UnbatchNode(const Dataset& parent, Site site)
      : Transform("unbatch", site, parent) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  // Known where all batches are of one known size.
  int64_t cardinality() const override {
    const int64_t n = parent().cardinality();
    if (n == 0 || n == kInfinite) return n;
    if (n < 0) return kUnknown;
    const auto& specs = parent().specs();
    if (specs.empty() || specs[0].shape.rank() == 0) return kUnknown;
    const int64_t size = specs[0].shape[0];
    int64_t all = 0;
    if (size < 0 || __builtin_mul_overflow(n, size, &all)) return kUnknown;
    return all;
  }
  const std::vector<TensorSpec>& specs() const override {
    std::call_once(once_, [&] {
      for (TensorSpec spec : parent().specs()) {
        if (spec.shape.rank() > 0) spec.shape.erase(0);
        specs_.push_back(std::move(spec));
      }
    });
    return specs_;
  }

 private:
  mutable std::once_flag once_;
  mutable std::vector<TensorSpec> specs_;
};

class UnbatchStream : public ElementStream {
 public:
  UnbatchStream(const UnbatchNode& node, const PassInfo& pass)
      : node_(node), source_(node.parent().open(pass)), stop_(pass.stop) {}
  bool next(Tensors* out) override {
    while (!rows_ || at_ == rows_->count()) {
      if (stopped(stop_) || !source_->next(&batch_)) return false;
      cut();
      at_ = 0;
      ++number_;
    }
    rows_->row(at_++, out);
    return true;
  }
  void save(PassWriter& w) override {
    w.begin(node_);
    w.put(number_);
    const bool inside = rows_ && at_ < rows_->count();
    w.put(inside);
    if (inside) {
      w.put(at_);
      w.put(batch_);
    }
    source_->save(w);
  }
  void restore(PassReader& r) override {
    r.begin(node_);
    number_ = r.number(0);
    if (r.flag()) {
      at_ = r.number(0);
      batch_ = r.element();
      cut();
      if (at_ > rows_->count()) r.damaged("it is behind the end of a batch");
    }
    source_->restore(r);
  }

 private:
  void cut() {
    for (size_t c = 0; c < batch_.size(); ++c) {
      const Tensor& t = batch_[c];
      if (t.rank() > 0 && t.shape()[0] == batch_[0].shape()[0]) continue;
      refuse(node_.where(),
             fmt::format("component {} of element {} is {}, component 0 is "
                         "{}; expected equal first dimensions to cut along",
                         c, number_, t.spec().str(), batch_[0].spec().str()));
    }
    rows_.emplace(batch_);
  }

  const UnbatchNode& node_;
  std::unique_ptr<ElementStream> source_;
  std::stop_token stop_;
  Tensors batch_;
  std::optional<TensorRows> rows_;  // of batch_
  int64_t at_ = 0;                  // its next row
  int64_t number_ = 0;              // of the next batch
};

std::unique_ptr<ElementStream> UnbatchNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<UnbatchStream>(*this, pass);
}

class RebatchNode : public Transform {
 public:
  RebatchNode(const Dataset& parent, std::vector<int64_t> sizes,
              bool drop_remainder, Site site)
      : Transform("rebatch", site, parent),
        sizes_(std::move(sizes)),
        drop_remainder_(drop_remainder) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  int64_t cardinality() const override {
    const int64_t n = parent().cardinality();
    if (n <= 0) return n;
    int64_t batches = 0, left = n;
    int64_t round = 0;
    for (const int64_t size : sizes_) {
      if (__builtin_add_overflow(round, size, &round)) return kUnknown;
    }
    batches = left / round * static_cast<int64_t>(sizes_.size());
    left %= round;
    for (size_t i = 0; left > 0; ++i) {
      if (left < sizes_[i] && drop_remainder_) break;
      left -= std::min(left, sizes_[i]);
      ++batches;
    }
    return batches;
  }
  const std::vector<TensorSpec>& specs() const override {
    std::call_once(once_, [&] {
      for (TensorSpec spec : parent().specs()) {
        const bool one = sizes_.size() == 1 && drop_remainder_;
        spec.shape = batched(spec.shape, one ? sizes_[0] : kUnknownDim);
        specs_.push_back(std::move(spec));
      }
    });
    return specs_;
  }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  bool drop_remainder() const { return drop_remainder_; }

 private:
  std::vector<int64_t> sizes_;
  bool drop_remainder_;
  mutable std::once_flag once_;
  mutable std::vector<TensorSpec> specs_;
};

class RebatchStream : public ElementStream {
 public:
  RebatchStream(const RebatchNode& node, const PassInfo& pass)
      : node_(node), source_(node.parent().open(pass)) {}
  bool next(Tensors* out) override {
    const auto size = static_cast<size_t>(
        node_.sizes()[static_cast<size_t>(number_) % node_.sizes().size()]);
    Tensors row;
    while (source_ && rows_.size() < size) {
      if (!source_->next(&row)) {
        source_.reset();
        break;
      }
      rows_.push_back(std::move(row));
      row = {};
    }
    if (rows_.empty() || (rows_.size() < size && node_.drop_remainder())) {
      return false;
    }
    stack(node_, rows_, first_, out);
    first_ += static_cast<int64_t>(rows_.size());
    rows_.clear();
    ++number_;
    return true;
  }
  void save(PassWriter& w) override {
    w.begin(node_);
    w.put(number_);
    w.put(first_);
    save_values(w, rows_);
    save_source(w, source_);
  }
  void restore(PassReader& r) override {
    r.begin(node_);
    number_ = r.number(0);
    first_ = r.number(0);
    restore_values(r, node_, &rows_);
    restore_source(r, &source_);
  }

 private:
  const RebatchNode& node_;
  std::unique_ptr<ElementStream> source_;  // null at its end
  std::vector<Tensors> rows_;              // of the current batch
  int64_t number_ = 0;                     // of the batch
  int64_t first_ = 0;                      // number of its first row
};

std::unique_ptr<ElementStream> RebatchNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<RebatchStream>(*this, pass);
}

}  // namespace

Dataset Dataset::unbatch(Site site) const {
  return make_dataset<UnbatchNode>(*this, site);
}

Dataset Dataset::rebatch(std::vector<int64_t> sizes,
                         const RebatchOptions& options, Site site) const {
  const std::string where = call_text("rebatch", site);
  if (sizes.empty()) refuse(where, "there are no sizes; expected at least one");
  for (const int64_t size : sizes) {
    if (size < 1) {
      refuse(where, fmt::format("a size is {}; expected at least 1", size));
    }
  }
  return make_dataset<RebatchNode>(unbatch(site), std::move(sizes),
                                   options.drop_remainder, site);
}

}  // namespace berth::data
