#include "backends/gpu/sort_scan_util.h"

#include <fmt/format.h>

#include <utility>

namespace berth::gpu {

namespace {
namespace sorting {

constexpr int kEach = 8;       // EACH of kernels/order.cl
constexpr int kDigitBits = 4;  // DIGITS is 16

KernelSource sort_source() {
  KernelSource s;
  s.files = {"order.cl"};
  return s;
}

// Few enough for each key to be compared with all others.
constexpr int64_t kFew = 4096;

int64_t blocks_of(const Recipe& r, int64_t n) {
  const int64_t block = int64_t{r.features().group_size} * kEach;
  return (n + block - 1) / block;
}

size_t bytes_of(int64_t n, size_t each) {
  return static_cast<size_t>(n) * each;
}

}  // namespace sorting
}  // namespace

SortedKeys sort_keys(Recipe& r, const Arg& keys, int64_t n, int bits) {
  const KernelSource source = sorting::sort_source();
  SortedKeys to{r.scratch(sorting::bytes_of(n, 8)),
                r.scratch(sorting::bytes_of(n, 4))};
  if (n <= sorting::kFew) {
    r.flat(source, "sort_few", n,
           {to.keys, to.places, keys, value(static_cast<int32_t>(n))});
    return to;
  }
  const int64_t blocks = sorting::blocks_of(r, n);
  const Arg found = r.scratch(sorting::bytes_of(16 * blocks, 4));
  SortedKeys from{keys, r.scratch(sorting::bytes_of(n, 4))};
  for (int32_t shift = 0; shift == 0 || shift < bits;
       shift += sorting::kDigitBits) {
    r.groups(source, "sort_count", blocks,
             {found, from.keys, value(shift), value(n)});
    r.groups(source, "sum_all", 1, {found, value(16 * blocks)});
    const int32_t first = shift == 0 ? 1 : 0;
    r.groups(source, "sort_place", blocks,
             {to.keys, to.places, from.keys, from.places, value(first), found,
              value(shift), value(n)});
    std::swap(from, to);
  }
  return from;
}

void sum_before(Recipe& r, const Arg& values, int64_t n) {
  const KernelSource source = sorting::sort_source();
  const int64_t blocks = sorting::blocks_of(r, n);
  if (blocks <= 1) {
    return r.groups(source, "sum_all", blocks, {values, value(n)});
  }
  const Arg sums = r.scratch(sorting::bytes_of(blocks, 4));
  r.groups(source, "sum_blocks", blocks, {sums, values, value(n)});
  r.groups(source, "sum_all", 1, {sums, value(blocks)});
  r.groups(source, "sum_within", blocks, {values, sums, value(n)});
}

int32_t index_kind(DType dtype) {
  return dtype == int32 ? 0 : dtype == int64 ? 1 : 2;
}

Coordinates coordinates_of(const Recipe& r, int indices, const Shape& target,
                           int64_t unit) {
  const Shape& s = r.in_shape(indices);
  const std::vector<int64_t> strides = row_strides(target);
  Coordinates c;
  c.kind = index_kind(r.in_type(indices));
  c.depth = static_cast<int32_t>(s[s.rank() - 1]);
  for (int d = 0; d < c.depth; ++d) {
    c.dim[d] = target[d];
    c.stride[d] = unit == 0 ? 0 : strides[static_cast<size_t>(d)] / unit;
  }
  return c;
}

int64_t coordinate_rows(const Shape& indices) {
  return elements_between(indices, 0, indices.rank() - 1);
}

std::vector<std::string> index_texts(const Recipe& r, const Shape& target,
                                     int axis) {
  return {
      fmt::format("{}: index {{0}} at place {{1}} of the indices is out of "
                  "range for axis {} of {}; expected one in [0, {{2}})",
                  r.args().op->name(), axis, target.str())};
}

std::vector<std::string> coordinate_texts(const Recipe& r, int indices,
                                          const Shape& target) {
  const Shape& s = r.in_shape(indices);
  std::vector<std::string> texts;
  for (int d = 0; d < std::max<int64_t>(s[s.rank() - 1], 1); ++d) {
    texts.push_back(
        fmt::format("{}: coordinate {} of index {{0}} is {{1}}, out of range "
                    "for {}; expected one in [0, {})",
                    r.args().op->name(), d, target.str(),
                    d < target.rank() ? target[d] : 0));
  }
  return texts;
}

}  // namespace berth::gpu
