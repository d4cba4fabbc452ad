// indexing: selecting, writing, grouping and sorting elements by other tensors
// (tf.*).
//
// Indices are int32 or int64; one out of range is an errors::InvalidArgument,
// as is a shape, axis or dtype that does not fit. If the length of a result
// depends on the values, the call reads them; a traced function, which cannot,
// needs a `max_size` or `num_segments` and fails without it. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_INDEXING_H_
#define BERTH_OPS_INDEXING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "berth/tensor.h"

namespace berth {

// The elements or slices of params at the coordinates in the last axis of
// indices [..., k], which index its first k axes: [..., params after axis k].
Tensor gather_nd(const Tensor& params, const Tensor& indices,
                 Site site = Site::here());
// Zeros of `shape` to which updates [..., shape after axis k] are added at
// indices [..., k].
Tensor scatter_nd(const Tensor& indices, const Tensor& updates,
                  const Shape& shape, Site site = Site::here());

// A copy of `tensor` in which the elements at indices are replaced by updates
// (the last of equal indices wins), or combined with them.
Tensor tensor_scatter_nd_update(const Tensor& tensor, const Tensor& indices,
                                const Tensor& updates,
                                Site site = Site::here());
Tensor tensor_scatter_nd_add(const Tensor& tensor, const Tensor& indices,
                             const Tensor& updates, Site site = Site::here());
Tensor tensor_scatter_nd_sub(const Tensor& tensor, const Tensor& indices,
                             const Tensor& updates, Site site = Site::here());
Tensor tensor_scatter_nd_min(const Tensor& tensor, const Tensor& indices,
                             const Tensor& updates, Site site = Site::here());
Tensor tensor_scatter_nd_max(const Tensor& tensor, const Tensor& indices,
                             const Tensor& updates, Site site = Site::here());

// Results of fixed length for traced functions: the first `count` rows of
// `values` [max_size, ...] are valid, the others are 0. More than max_size is
// an error at run time.
struct Padded {
  Tensor values;
  Tensor count;  // scalar int64
};
struct MaxSize {
  int64_t max_size;
};

// Indices of the true elements in row-major order: int64 [count, rank].
Tensor where(const Tensor& condition, Site site = Site::here());
Padded where(const Tensor& condition, MaxSize max_size,
             Site site = Site::here());
// The slices of x [mask's shape, ...] where mask is true: [count, ...].
Tensor boolean_mask(const Tensor& x, const Tensor& mask,
                    Site site = Site::here());
Padded boolean_mask(const Tensor& x, const Tensor& mask, MaxSize max_size,
                    Site site = Site::here());

struct UniqueOptions {
  DType out_idx = int32;  // or int64
  std::optional<int64_t> max_size = std::nullopt;
};
struct Unique {
  Tensor y;      // the distinct elements, in order of appearance
  Tensor idx;    // [n]: index in y of each element of x
  Tensor count;  // like y: number of occurrences
  Tensor size;   // scalar int64: number of distinct elements
};
// Distinct elements of x [n]. NaN differs from NaN.
Unique unique(const Tensor& x, const UniqueOptions& options = {},
              Site site = Site::here());
Unique unique_with_counts(const Tensor& x, const UniqueOptions& options = {},
                          Site site = Site::here());

struct TopK {
  Tensor values;   // [..., k], the largest first
  Tensor indices;  // int32 [..., k]
};
// The k largest along the last axis; on a tie the first. NaN is larger than any
// number, here and in sort.
TopK top_k(const Tensor& x, int64_t k = 1, bool sorted = true,
           Site site = Site::here());
// bool [batch]: whether predictions [batch, classes] have the target [batch]
// among their k largest; ties count. False for a target that is not a class, or
// without a finite prediction.
Tensor in_top_k(const Tensor& targets, const Tensor& predictions, int64_t k,
                Site site = Site::here());

struct SortOptions {
  int64_t axis = -1;
  std::string direction = "ASCENDING";  // or "DESCENDING"
};
// Sorted elements along an axis, and their indices (int32); stable.
Tensor sort(const Tensor& x, const SortOptions& options = {},
            Site site = Site::here());
Tensor argsort(const Tensor& x, const SortOptions& options = {},
               Site site = Site::here());

struct SearchOptions {
  std::string side = "left";  // or "right"
  DType out_type = int32;     // or int64
};
// For each of values [..., m] the first (left) or last (right) index in sorted
// [..., n] where inserting it keeps the order.
Tensor searchsorted(const Tensor& sorted, const Tensor& values,
                    const SearchOptions& options = {},
                    Site site = Site::here());

// y with y[x[i]] = i, for a permutation x [n].
Tensor invert_permutation(const Tensor& x, Site site = Site::here());

struct BincountOptions {
  Tensor weights = {};  // like x; weights of 1 if empty
  int64_t minlength = 0;
  std::optional<int64_t> maxlength = std::nullopt;  // larger ones are ignored
  DType dtype = int32;  // of counts; weights keep theirs
};
// Counts of each integer in x, all at least 0: [largest + 1], clamped to the
// given lengths. A traced function must give maxlength, and gets that many.
Tensor bincount(const Tensor& x, const BincountOptions& options = {},
                Site site = Site::here());
// Counts of `values` in each of nbins equal parts of [low, high]; values
// outside count in the first and last part. int32 [nbins].
Tensor histogram_fixed_width(const Tensor& values, double low, double high,
                             int64_t nbins = 100, Site site = Site::here());

// Segments: row i of data, of the shape after segment_ids', goes into row
// segment_ids[i] of the result [num_segments, ...]. Negative ids are dropped.
// Empty segments: sum and mean 0, prod 1, min and max the largest and lowest
// number.
Tensor unsorted_segment_sum(const Tensor& data, const Tensor& segment_ids,
                            int64_t num_segments, Site site = Site::here());
Tensor unsorted_segment_mean(const Tensor& data, const Tensor& segment_ids,
                             int64_t num_segments, Site site = Site::here());
Tensor unsorted_segment_prod(const Tensor& data, const Tensor& segment_ids,
                             int64_t num_segments, Site site = Site::here());
Tensor unsorted_segment_min(const Tensor& data, const Tensor& segment_ids,
                            int64_t num_segments, Site site = Site::here());
Tensor unsorted_segment_max(const Tensor& data, const Tensor& segment_ids,
                            int64_t num_segments, Site site = Site::here());

struct SegmentOptions {
  std::optional<int64_t> num_segments = std::nullopt;
};
// Reduces segments whose ids [n] ascend; without num_segments the last id
// determines it. Empty segments: 0, prod 1.
Tensor segment_sum(const Tensor& data, const Tensor& segment_ids,
                   const SegmentOptions& options = {},
                   Site site = Site::here());
Tensor segment_mean(const Tensor& data, const Tensor& segment_ids,
                    const SegmentOptions& options = {},
                    Site site = Site::here());
Tensor segment_prod(const Tensor& data, const Tensor& segment_ids,
                    const SegmentOptions& options = {},
                    Site site = Site::here());
Tensor segment_min(const Tensor& data, const Tensor& segment_ids,
                   const SegmentOptions& options = {},
                   Site site = Site::here());
Tensor segment_max(const Tensor& data, const Tensor& segment_ids,
                   const SegmentOptions& options = {},
                   Site site = Site::here());

namespace math {
using berth::bincount;
using berth::in_top_k;
using berth::invert_permutation;
using berth::segment_max;
using berth::segment_mean;
using berth::segment_min;
using berth::segment_prod;
using berth::segment_sum;
using berth::top_k;
using berth::unsorted_segment_max;
using berth::unsorted_segment_mean;
using berth::unsorted_segment_min;
using berth::unsorted_segment_prod;
using berth::unsorted_segment_sum;
}  // namespace math
namespace nn {
using berth::in_top_k;
using berth::top_k;
}  // namespace nn

}  // namespace berth

#endif  // BERTH_OPS_INDEXING_H_
