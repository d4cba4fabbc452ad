// unbatch and rebatch: batches split along their first dimension.

#include <fmt/format.h>

#include "base/where.h"
#include "data/pass_state.h"
#include "data/stack.h"

namespace berth::data {

namespace {

class UnbatchNode : public Transform {
 public:
  UnbatchNode(const Dataset& parent, Site site)
      : Transform("unbatch", site, parent) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }
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
    return specs_.get([&] {
      std::vector<TensorSpec> all = parent().specs();
      for (TensorSpec& spec : all) {
        if (spec.shape.rank() > 0) spec.shape.erase(0);
      }
      return all;
    });
  }

 private:
  class Stream : public TransformStream<UnbatchNode> {
   public:
    using TransformStream::TransformStream;
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
    void state(PassState& s) override {
      s.begin(node_);
      s(number_);
      bool inside = rows_ && at_ < rows_->count();
      s(inside);
      if (inside) {
        s(at_);
        s(batch_);
        if (s.restoring()) cut();
        if (at_ > rows_->count()) {
          s.reader().damaged("it is behind the end of a batch");
        }
      }
      s(source_);
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

    Tensors batch_;
    std::optional<TensorRows> rows_;  // of batch_
    int64_t at_ = 0;                  // its next row
  };

  LazySpecs specs_;
};

class RebatchNode : public Transform {
 public:
  RebatchNode(const Dataset& parent, std::vector<int64_t> sizes,
              bool drop_remainder, Site site)
      : Transform("rebatch", site, parent),
        sizes_(std::move(sizes)),
        drop_remainder_(drop_remainder) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override {
    return std::make_unique<Stream>(*this, pass);
  }
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
    const bool one = sizes_.size() == 1 && drop_remainder_;
    return specs_.get([&] {
      return batched(parent().specs(), one ? sizes_[0] : kUnknownDim);
    });
  }

 private:
  class Stream : public TransformStream<RebatchNode> {
   public:
    using TransformStream::TransformStream;
    bool next(Tensors* out) override {
      const auto& sizes = node_.sizes_;
      const auto size = static_cast<size_t>(
          sizes[static_cast<size_t>(number_) % sizes.size()]);
      Tensors row;
      while (source_ && rows_.size() < size) {
        if (!source_->next(&row)) {
          source_.reset();
          break;
        }
        rows_.push_back(std::move(row));
        row = {};
      }
      if (rows_.empty() || (rows_.size() < size && node_.drop_remainder_)) {
        return false;
      }
      stack(node_, rows_, first_, out);
      first_ += static_cast<int64_t>(rows_.size());
      rows_.clear();
      ++number_;
      return true;
    }
    void state(PassState& s) override {
      s.begin(node_);
      s(number_);
      s(first_);
      s.values(node_, rows_);
      s.until_end(source_);
    }

   private:
    std::vector<Tensors>
        rows_;           // of the current batch, whose number is number_
    int64_t first_ = 0;  // number of its first row
  };

  std::vector<int64_t> sizes_;
  bool drop_remainder_;
  LazySpecs specs_;
};

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
