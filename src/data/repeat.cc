// Dataset::repeat.

#include "data/pass_state.h"

namespace berth::data {

namespace {

template <class T>
class RepeatStream : public PassStream<T> {
 public:
  RepeatStream(const Transform* node, int64_t count, PassInfo pass)
      : node_(node),
        parent_(&node->parent()),
        left_(count),
        pass_(std::move(pass)) {}
  bool next(T* out) override {
    while (left_ != 0 && !stopped(pass_.stop)) {
      if (!source_) source_ = data::open<T>(*parent_, pass_);
      if (source_->next(out)) {
        any_ = true;
        return true;
      }
      source_.reset();
      if (left_ > 0) --left_;
      // For ever nothing is nothing.
      if (left_ < 0 && !any_) return false;
    }
    return false;
  }
  void save(PassWriter& w) override {
    w.begin(*node_);
    w.put(left_);
    w.put(any_);
    w.put_memory(*parent_, [&] { save_source(w, source_); });
  }
  void restore(PassReader& r) override {
    r.begin(*node_);
    left_ = r.number(std::min<int64_t>(left_, 0), std::max<int64_t>(left_, 0));
    any_ = r.flag();
    // Opening it counts as a pass, which what was saved has counted.
    source_ = data::open<T>(*parent_, pass_);
    r.memory(*parent_);
    restore_source(r, &source_);
  }

 private:
  const Transform* node_;
  const Node* parent_;
  int64_t left_;  // passes, with the current one; negative: no end
  PassInfo pass_;
  std::unique_ptr<PassStream<T>> source_;
  bool any_ = false;
};

class RepeatNode : public Selection<RepeatNode> {
 public:
  RepeatNode(const Dataset& parent, int64_t count, Site site)
      : Selection("repeat", site, parent), count_(count) {}
  template <class T>
  std::unique_ptr<PassStream<T>> stream(const PassInfo& pass) const {
    return std::make_unique<RepeatStream<T>>(this, count_, pass);
  }
  int64_t cardinality() const override {
    const int64_t n = parent().cardinality();
    if (n == 0 || count_ == 0) return 0;
    if (n < 0) return n;
    int64_t all = 0;
    if (count_ < 0 || __builtin_mul_overflow(n, count_, &all)) return kInfinite;
    return all;
  }

 private:
  int64_t count_;
};

}  // namespace

Dataset Dataset::repeat(int64_t count, Site site) const {
  return make_dataset<RepeatNode>(*this, count, site);
}

}  // namespace berth::data
