// Dataset::skip.

#include "data/pass_state.h"

namespace berth::data {

namespace {

template <class T>
class SkipStream : public PassStream<T> {
 public:
  SkipStream(const Node* node, std::unique_ptr<PassStream<T>> source,
             int64_t count, std::stop_token stop)
      : node_(node),
        source_(std::move(source)),
        left_(count),
        stop_(std::move(stop)) {}
  bool next(T* out) override {
    for (; left_ > 0; --left_) {
      if (stopped(stop_) || !source_->next(out)) return false;
    }
    return source_->next(out);
  }
  void save(PassWriter& w) override {
    w.begin(*node_);
    w.put(left_);
    source_->save(w);
  }
  void restore(PassReader& r) override {
    r.begin(*node_);
    left_ = r.number(0, left_);
    source_->restore(r);
  }

 private:
  const Node* node_;
  std::unique_ptr<PassStream<T>> source_;
  int64_t left_;
  std::stop_token stop_;
};

class SkipNode : public Selection<SkipNode> {
 public:
  SkipNode(const Dataset& parent, int64_t count, Site site)
      : Selection("skip", site, parent), count_(count) {}
  template <class T>
  std::unique_ptr<PassStream<T>> stream(const PassInfo& pass) const {
    return std::make_unique<SkipStream<T>>(this, data::open<T>(parent(), pass),
                                           count_, pass.stop);
  }
  int64_t cardinality() const override {
    const int64_t n = parent().cardinality();
    return n < 0 ? n : std::max<int64_t>(0, n - count_);
  }

 private:
  int64_t count_;
};

}  // namespace

Dataset Dataset::skip(int64_t count, Site site) const {
  if (count < 0) return take(0, site);
  return make_dataset<SkipNode>(*this, count, site);
}

}  // namespace berth::data
