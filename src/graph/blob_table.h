// Blobs: large constants that a graph text names by hash.
//
// The text holds the hash, this process the tensor. The newest tensors stay,
// up to kMaxBlobBytes together. Thread-safe.

#ifndef BERTH_GRAPH_BLOB_TABLE_H_
#define BERTH_GRAPH_BLOB_TABLE_H_

#include <cstddef>
#include <string>

#include "berth/tensor.h"

namespace berth {

inline constexpr size_t kMaxBlobBytes = size_t{256} << 20;

// Keeps `t`; returns the 32 hex digits of a hash of dtype, shape and bytes.
// Waits for the values.
std::string keep_blob(const Tensor& t);

// Returns the tensor; an empty one when nobody kept it.
Tensor find_blob(const std::string& hash);

// While one lives, its thread reads graphs for their structure alone: a blob
// that nobody kept is a tensor whose values are not set, which keep_blob()
// names by the same hash.
class BlobsWithoutValues {
 public:
  BlobsWithoutValues();
  ~BlobsWithoutValues();
  BlobsWithoutValues(const BlobsWithoutValues&) = delete;
  BlobsWithoutValues& operator=(const BlobsWithoutValues&) = delete;
};

// Returns such a tensor; an empty one outside of their lives.
Tensor blob_without_values(const std::string& hash, DType dtype,
                           const Shape& shape);

}  // namespace berth

#endif  // BERTH_GRAPH_BLOB_TABLE_H_
