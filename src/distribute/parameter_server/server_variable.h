// ServerVariable: a variable that parameter servers keep, whole or in shards by
// rows. variable_placement.cc decides which server has which rows.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_SERVER_VARIABLE_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_SERVER_VARIABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::distribute {

// Rows [begin, end) of a variable, on a server.
struct ServerShard {
  int server = 0;
  int64_t begin = 0, end = 0;
};

// A variable that servers keep.
struct ServerVariable {
  int64_t id = 0;
  Tensor handle;            // the chief's copy
  bool everywhere = false;  // each server has all of it, with equal updates
  std::vector<ServerShard> shards;  // one shard: the whole variable

  bool sharded() const { return !everywhere && shards.size() > 1; }
  // The key under which a server stores its shard.
  std::string key(size_t shard) const;
  Shape shard_shape(size_t shard) const;
  Tensor shard_of(const Tensor& whole, size_t shard) const;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_SERVER_VARIABLE_H_
