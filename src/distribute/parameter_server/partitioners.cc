// How many shards a variable is split into.

#include <fmt/format.h>

#include <algorithm>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/parameter_server.h"

namespace berth::distribute {

std::vector<int64_t> Partitioner::operator()(const Shape& shape, DType dtype,
                                             int axis, Site site) const {
  if (axis < 0 || axis >= shape.rank()) {
    throw errors::InvalidArgument(
        fmt::format("a partitioner is asked for axis {} of shape {}{}; "
                    "expected one of its axes",
                    axis, shape.str(), where_text(nullptr, site)));
  }
  std::vector<int64_t> shards(static_cast<size_t>(shape.rank()), 1);
  if (fn_) {
    shards[static_cast<size_t>(axis)] =
        std::max<int64_t>(1, std::min(fn_(shape, dtype, axis), shape[axis]));
  }
  return shards;
}

namespace partitioners {

namespace {

void check_at_least_one(const char* partitioner, const char* what, int64_t n,
                        Site site) {
  if (n >= 1) return;
  throw errors::InvalidArgument(
      fmt::format("{}: {} is {}{}; expected at least 1", partitioner, what, n,
                  where_text(nullptr, site)));
}

int64_t bytes_of(const Shape& shape, DType dtype, int64_t bytes_per_string) {
  const int64_t element = dtype == string_
                              ? bytes_per_string
                              : static_cast<int64_t>(size_of(dtype));
  return shape.num_elements() * element;
}

}  // namespace

Partitioner FixedShardsPartitioner(int64_t num_shards, Site site) {
  check_at_least_one("FixedShardsPartitioner", "num_shards", num_shards, site);
  return Partitioner(
      [num_shards](const Shape&, DType, int) { return num_shards; });
}

Partitioner MinSizePartitioner(MinSizeOptions o, Site site) {
  constexpr const char* kName = "MinSizePartitioner";
  check_at_least_one(kName, "min_shard_bytes", o.min_shard_bytes, site);
  check_at_least_one(kName, "max_shards", o.max_shards, site);
  check_at_least_one(kName, "bytes_per_string", o.bytes_per_string, site);
  return Partitioner([o](const Shape& shape, DType dtype, int) {
    const int64_t bytes = bytes_of(shape, dtype, o.bytes_per_string);
    const int64_t wanted = (bytes + o.min_shard_bytes - 1) / o.min_shard_bytes;
    return std::min(o.max_shards, wanted);
  });
}

Partitioner MaxSizePartitioner(MaxSizeOptions o, Site site) {
  constexpr const char* kName = "MaxSizePartitioner";
  check_at_least_one(kName, "max_shard_bytes", o.max_shard_bytes, site);
  if (o.max_shards)
    check_at_least_one(kName, "max_shards", *o.max_shards, site);
  check_at_least_one(kName, "bytes_per_string", o.bytes_per_string, site);
  return Partitioner([o](const Shape& shape, DType dtype, int axis) {
    const int64_t length = std::max<int64_t>(shape[axis], 1);
    const int64_t row = std::max<int64_t>(
        1, bytes_of(shape, dtype, o.bytes_per_string) / length);
    const int64_t rows = std::max<int64_t>(1, o.max_shard_bytes / row);
    const int64_t wanted = (length + rows - 1) / rows;
    return std::min(wanted, o.max_shards.value_or(wanted));
  });
}

}  // namespace partitioners

}  // namespace berth::distribute
