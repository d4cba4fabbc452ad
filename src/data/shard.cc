#include <fmt/format.h>

#include "data/pass_state.h"

namespace berth::data {

namespace {

class ShardNode : public Selection<ShardNode> {
 public:
  ShardNode(const Dataset& parent, int64_t shards, int64_t index, Site site)
      : Selection("shard", site, parent), shards_(shards), index_(index) {}
  template <class T>
  std::unique_ptr<Stream<T>> stream(const Pass& pass) const;
  int64_t cardinality() const override {
    const int64_t n = parent().cardinality();
    if (n < 0) return n;
    return n / shards_ + (index_ < n % shards_ ? 1 : 0);
  }
  int64_t shards() const { return shards_; }
  int64_t index() const { return index_; }

 private:
  int64_t shards_, index_;
};

template <class T>
class ShardStream : public Stream<T> {
 public:
  ShardStream(const ShardNode* node, const Pass& pass)
      : node_(node),
        source_(data::open<T>(node->parent(), pass)),
        stop_(pass.stop),
        skip_(node->index()) {}
  bool next(T* out) override {
    for (; skip_ > 0; --skip_) {
      if (stop_.stop_requested() || !source_->next(out)) return false;
    }
    skip_ = node_->shards() - 1;
    return source_->next(out);
  }
  void save(PassWriter& w) override {
    w.begin(*node_);
    w.put(skip_);
    source_->save(w);
  }
  void restore(PassReader& r) override {
    r.begin(*node_);
    skip_ = r.number(0, node_->shards() - 1);
    source_->restore(r);
  }

 private:
  const ShardNode* node_;
  std::unique_ptr<Stream<T>> source_;
  std::stop_token stop_;
  int64_t skip_;  // elements of others before the next
};

template <class T>
std::unique_ptr<Stream<T>> ShardNode::stream(const Pass& pass) const {
  return std::make_unique<ShardStream<T>>(this, pass);
}

}  // namespace

Dataset Dataset::shard(int64_t num_shards, int64_t index, Site site) const {
  if (num_shards < 1 || index < 0 || index >= num_shards) {
    refuse(fmt::format("shard ({}:{})", site.file, site.line),
           fmt::format("num_shards is {}, index is {}; expected num_shards of "
                       "at least 1, and index from 0 to num_shards - 1",
                       num_shards, index));
  }
  return make_dataset<ShardNode>(*this, num_shards, index, site);
}

}  // namespace berth::data
