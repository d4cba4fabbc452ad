#include "distribute/parameter_server/server_variable.h"

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

std::string ServerVariable::key(size_t shard) const {
  return fmt::format("v{}/p{}", id, everywhere ? 0 : shard);
}

Shape ServerVariable::shard_shape(size_t shard) const {
  Shape shape = variable_state(handle).shape;
  if (sharded()) shape[0] = shards[shard].end - shards[shard].begin;
  return shape;
}

Tensor ServerVariable::shard_of(const Tensor& whole, size_t shard) const {
  if (!sharded()) return whole;
  return whole[{slice(shards[shard].begin, shards[shard].end)}];
}

}  // namespace berth::distribute
