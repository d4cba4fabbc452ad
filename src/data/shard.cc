// Dataset::shard.

#include <fmt/format.h>

#include "base/where.h"
#include "berth/data_options.h"
#include "data/every_nth.h"

namespace berth::data {

namespace {

class ShardNode : public Selection<ShardNode> {
 public:
  ShardNode(const Dataset& parent, int64_t shards, int64_t index, Site site)
      : Selection("shard", site, parent), shards_(shards), index_(index) {}
  template <class T>
  std::unique_ptr<PassStream<T>> stream(const PassInfo& pass) const {
    const PassShard mine = !hint()
                               ? PassShard{.tasks = shards_, .index = index_}
                           : pass.shard.by_hint ? pass.shard
                                                : PassShard{};
    return std::make_unique<EveryNth<T>>(
        data::open<T>(parent(), pass), mine.tasks, mine.index, pass.stop, this);
  }
  int64_t cardinality() const override {
    const int64_t n = parent().cardinality();
    if (n < 0 || hint()) return n;
    return n / shards_ + (index_ < n % shards_ ? 1 : 0);
  }
  // Split by the tasks of the pass; whole where there is one.
  bool takes_hint() const override { return hint(); }
  bool hint() const { return shards_ == SHARD_HINT; }

 private:
  int64_t shards_, index_;
};

}  // namespace

Dataset Dataset::shard(int64_t num_shards, int64_t index, Site site) const {
  const bool hint = num_shards == SHARD_HINT && index == SHARD_HINT;
  if (hint) return make_dataset<ShardNode>(*this, num_shards, index, site);
  if (num_shards < 1 || index < 0 || index >= num_shards) {
    refuse(
        call_text("shard", site),
        fmt::format("num_shards is {}, index is {}; expected num_shards of "
                    "at least 1, and index from 0 to num_shards - 1, or both "
                    "SHARD_HINT",
                    num_shards, index));
  }
  return make_dataset<ShardNode>(*this, num_shards, index, site);
}

}  // namespace berth::data
