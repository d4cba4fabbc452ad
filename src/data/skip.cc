// Dataset::skip.

#include "data/pass_state.h"

namespace berth::data {

namespace {

class SkipNode : public Selection<SkipNode> {
 public:
  SkipNode(const Dataset& parent, int64_t count, Site site)
      : Selection("skip", site, parent), count_(count) {}
  template <class T>
  std::unique_ptr<PassStream<T>> stream(const PassInfo& pass) const {
    return std::make_unique<Stream<T>>(*this, pass);
  }
  int64_t cardinality() const override {
    const int64_t n = parent().cardinality();
    return n < 0 ? n : std::max<int64_t>(0, n - count_);
  }

 private:
  template <class T>
  class Stream : public TransformStream<SkipNode, T> {
   public:
    using TransformStream<SkipNode, T>::TransformStream;
    bool next(T* out) override {
      for (; left_ > 0; --left_) {
        if (stopped(this->stop_) || !this->source_->next(out)) return false;
      }
      return this->source_->next(out);
    }
    void state(PassState& s) override {
      s.begin(this->node_);
      s(left_, 0, left_);
      s(this->source_);
    }

   private:
    int64_t left_ = this->node_.count_;
  };

  int64_t count_;
};

}  // namespace

Dataset Dataset::skip(int64_t count, Site site) const {
  if (count < 0) return take(0, site);
  return make_dataset<SkipNode>(*this, count, site);
}

}  // namespace berth::data
