// CollectNode: batches of neighbours, whatever a batch is made like.
//
// Immutable and thread-safe, as all nodes are.

#ifndef BERTH_DATA_BATCH_BASE_H_
#define BERTH_DATA_BATCH_BASE_H_

#include <memory>
#include <span>

#include "data/node.h"

namespace berth::data {

class CollectNode : public Transform {
 public:
  CollectNode(const char* what, const Dataset& parent, int64_t size,
              bool drop_remainder, Site site)
      : Transform(what, site, parent),
        size_(static_cast<size_t>(size)),
        drop_remainder_(drop_remainder) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  int64_t cardinality() const override;

  // Makes a batch of `elements`, of which there is at least one; `first` is the
  // number of the first. Any thread.
  virtual void make(std::span<const Tensors> elements, int64_t first,
                    Tensors* out) const = 0;

  size_t size() const { return size_; }
  bool drop_remainder() const { return drop_remainder_; }
  // Whether so many elements are a batch.
  bool wanted(size_t count) const {
    return count == size_ || (count > 0 && !drop_remainder_);
  }
  // The size that all batches have, else kUnknownDim.
  int64_t known_size() const;

 private:
  size_t size_;
  bool drop_remainder_;
};

// Returns the batches of `serial`, options.num_parallel_calls of them made at
// once; `serial` itself where that is 0.
Dataset in_parallel(std::shared_ptr<const CollectNode> serial,
                    const BatchOptions& options);

// Throws errors::InvalidArgument unless size is positive.
void check_batch_size(const char* what, int64_t size, Site site);

}  // namespace berth::data

#endif  // BERTH_DATA_BATCH_BASE_H_
