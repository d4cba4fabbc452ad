// Dataset::take.

#include "data/pass_state.h"

namespace berth::data {

namespace {

template <class T>
class TakeStream : public PassStream<T> {
 public:
  TakeStream(const Node* node, std::unique_ptr<PassStream<T>> source,
             int64_t count)
      : node_(node), source_(std::move(source)), left_(count), count_(count) {}
  bool next(T* out) override {
    if (left_ == 0 || !source_->next(out)) return false;
    // What comes after is not wanted: its threads end now.
    if (--left_ == 0) source_.reset();
    return true;
  }
  void state(PassState& s) override {
    s.begin(*node_);
    s(left_, 0, count_);
    s.until_end(source_);
    if (!source_) left_ = 0;
  }

 private:
  const Node* node_;
  std::unique_ptr<PassStream<T>> source_;
  int64_t left_;
  int64_t count_;
};

class TakeNode : public Selection<TakeNode> {
 public:
  TakeNode(const Dataset& parent, int64_t count, Site site)
      : Selection("take", site, parent), count_(count) {}
  template <class T>
  std::unique_ptr<PassStream<T>> stream(const PassInfo& pass) const {
    return std::make_unique<TakeStream<T>>(
        this, count_ == 0 ? nullptr : data::open<T>(parent(), pass), count_);
  }
  int64_t cardinality() const override {
    const int64_t n = parent().cardinality();
    if (n == kInfinite || count_ == 0) return count_;
    return n == kUnknown ? kUnknown : std::min(n, count_);
  }

 private:
  int64_t count_;
};

}  // namespace

Dataset Dataset::take(int64_t count, Site site) const {
  if (count < 0) return *this;
  return make_dataset<TakeNode>(*this, count, site);
}

}  // namespace berth::data
