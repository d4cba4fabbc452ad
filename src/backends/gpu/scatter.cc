// Ops that combine updates with the places that indices select: the indices
// become keys, the keys are sorted, and each place takes its updates in order.

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"
#include "backends/gpu/sort_scan_util.h"
#include "tensor/visit_dtype.h"

namespace berth::gpu {

namespace {
namespace scattering {

// `Rows` of kernels/combine.cl.
struct Rows {
  int64_t count = 0;
  int64_t dim = 1;
  int64_t n = 1;
  int64_t outer = 1;
  int64_t inner = 1;
  uint64_t end = 0;
  int32_t narrow = 0;
  int32_t unused = 0;
};

KernelSource keys_source() {
  return storage_source(uint8, {"gather.cl", "keys.cl"});
}

bool lacks(const Recipe& r, DType dtype) {
  return !r.features().has_f64 && (dtype == float64 || dtype == complex128);
}

Arg keys_for(Recipe& r, int64_t n) {
  return r.scratch(static_cast<size_t>(n) * sizeof(uint64_t));
}

// Appends a pass that combines the updates with `target` as `keys` say.
void combine(Recipe& r, const char* how, DType dtype, const Arg& target,
             const Arg& updates, const Arg& keys, Rows rows) {
  const SortedKeys sorted = sort_keys(
      r, keys, rows.count, static_cast<int>(std::bit_width(rows.end)));
  const int64_t items = rows.count * rows.outer * rows.inner;
  rows.narrow = narrow_walk(
      std::max({items, static_cast<int64_t>(rows.end), rows.count}));
  KernelSource source;
  source.files = {"quotient.cl", "combine.cl"};
  source.types = {{"T", dtype}};
  r.flat(
      source, how, items,
      {target, updates, sorted.keys, sorted.places, value(rows), value(items)});
}

size_t bytes_of(const Shape& shape, DType dtype) {
  return static_cast<size_t>(shape.num_elements()) * size_of(dtype);
}

bool too_many(int64_t n) { return n > std::numeric_limits<int32_t>::max(); }

// Combines by coordinates; the indices are input `indices`.
bool combine_places(Recipe& r, const char* how, const Arg& target,
                    const Shape& shape, int indices, int updates) {
  const DType dtype = r.in_type(updates);
  const int64_t count = coordinate_rows(r.in_shape(indices));
  if (count == 0) return true;
  const auto depth =
      static_cast<int>(r.in_shape(indices)[r.in_shape(indices).rank() - 1]);
  const int64_t inner = elements_between(shape, depth, shape.rank());
  const int64_t places = elements_between(shape, 0, depth);
  const Coordinates c = coordinates_of(r, indices, shape, inner);
  const Arg fault = r.fault(coordinate_texts(r, indices, shape));
  const Arg keys = keys_for(r, count);
  Rows rows;
  rows.count = rows.n = count;
  rows.dim = std::max<int64_t>(places, 1);
  rows.inner = inner;
  rows.end = static_cast<uint64_t>(places);
  r.flat(keys_source(), "keys_of_places", count,
         {keys, in(indices), value(c), value(rows.end), value(count), fault});
  combine(r, how, dtype, target, in(updates), keys, rows);
  return true;
}

struct ByRows {
  int indices = 1;
  int64_t batches = 1;
  int64_t outer = 1;
  int64_t dim = 1;
  int64_t inner = 1;
  bool segments = false;
};

bool combine_rows(Recipe& r, const char* how, DType dtype, const Arg& target,
                  const Arg& updates, const ByRows& b,
                  std::vector<std::string> texts) {
  const int64_t count = r.in_shape(b.indices).num_elements();
  if (count == 0) return true;
  const Arg fault = r.fault(std::move(texts));
  const Arg keys = keys_for(r, count);
  Rows rows;
  rows.count = count;
  rows.dim = std::max<int64_t>(b.dim, 1);
  rows.n = count / b.batches;
  rows.outer = b.outer;
  rows.inner = b.inner;
  rows.end = static_cast<uint64_t>(b.batches * b.dim);
  r.flat(keys_source(), "keys_of_rows", count,
         {keys, in(b.indices), value(index_kind(r.in_type(b.indices))),
          value(b.dim), value(rows.n), value(int32_t{b.segments ? 1 : 0}),
          value(rows.end), value(count), fault});
  combine(r, how, dtype, target, updates, keys, rows);
  return true;
}

bool gather_grad(Recipe& r) {
  const Shape &params = r.out_shape(0), &indices = r.in_shape(1);
  const int axis = normalize_axis(r.args().attr<int64_t>("axis"), params.rank(),
                                  r.args().op->name().c_str());
  auto batch = static_cast<int>(r.args().attr<int64_t>("batch_dims"));
  if (batch < 0) batch += indices.rank();
  if (too_many(indices.num_elements())) return false;
  ByRows b;
  b.batches = elements_between(params, 0, batch);
  b.outer = elements_between(params, batch, axis);
  b.dim = params[axis];
  b.inner = elements_between(params, axis + 1, params.rank());
  r.fill(out(0), 0, bytes_of(params, r.out_type(0)));
  return combine_rows(r, "combine_add", r.in_type(0), out(0), in(0), b,
                      index_texts(r, params, axis));
}

bool scatter_nd(Recipe& r) {
  if (lacks(r, r.in_type(1)) || too_many(coordinate_rows(r.in_shape(0)))) {
    return false;
  }
  r.fill(out(0), 0, bytes_of(r.out_shape(0), r.out_type(0)));
  return combine_places(r, "combine_add", out(0), r.out_shape(0), 0, 1);
}

constexpr char kUpdate[] = "combine_update", kAdd[] = "combine_add",
               kSub[] = "combine_sub", kMul[] = "combine_mul",
               kDiv[] = "combine_div", kMin[] = "combine_min",
               kMax[] = "combine_max";

template <const char* kHow>
bool tensor_scatter(Recipe& r) {
  if (too_many(coordinate_rows(r.in_shape(1)))) return false;
  r.copy(out(0), in(0), bytes_of(r.out_shape(0), r.out_type(0)));
  return combine_places(r, kHow, out(0), r.out_shape(0), 1, 2);
}

template <const char* kHow>
bool resource_scatter(Recipe& r) {
  if (lacks(r, r.in_type(2)) || too_many(r.in_shape(1).num_elements())) {
    return false;
  }
  const Shape& shape = r.in_shape(0);
  ByRows b;
  b.dim = shape[0];
  b.inner = elements_between(shape, 1, shape.rank());
  return combine_rows(r, kHow, r.in_type(2), in(0), in(2), b,
                      index_texts(r, shape, 0));
}

template <const char* kHow>
bool resource_scatter_nd(Recipe& r) {
  if (lacks(r, r.in_type(2)) || too_many(coordinate_rows(r.in_shape(1)))) {
    return false;
  }
  return combine_places(r, kHow, in(0), r.in_shape(0), 1, 2);
}

// Returns the value of a segment without rows.
ElementBits empty_segment(DType dtype, const char* how) {
  if (how == kAdd) return {};
  if (how == kMul) return bits_of(dtype, 1);
  ElementBits bits;
  visit_dtype(dtype, "a segment", [&](auto zero) {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    const T v = how == kMin ? Limits::max() : Limits::lowest();
    std::memcpy(static_cast<void*>(&bits), &v, sizeof v);
  });
  return bits;
}

template <const char* kHow>
bool segment(Recipe& r) {
  const Shape& to = r.out_shape(0);
  const DType dtype = r.in_type(0);
  if (too_many(r.in_shape(1).num_elements())) return false;
  fill_elements(r, dtype, out(0), empty_segment(dtype, kHow),
                to.num_elements());
  ByRows b;
  b.dim = to[0];
  b.inner = elements_between(to, 1, to.rank());
  b.segments = true;
  return combine_rows(
      r, kHow, dtype, out(0), in(0), b,
      {fmt::format("{}: segment {{0}} at place {{1}} of the ids is out of "
                   "range; expected one below num_segments, {{2}}",
                   r.args().op->name())});
}

}  // namespace scattering
}  // namespace

void add_scatter(Kernels& k) {
  using namespace scattering;  // NOLINT: a table of its names
  k.add("GatherGrad", kEveryNumber, &gather_grad);
  k.add("GatherGradLike", kEveryNumber, &gather_grad);
  k.add("ScatterNd", kIndexTypes, &scatter_nd);
  k.add("ScatterNdLike", kIndexTypes, &scatter_nd);
  k.add("TensorScatterUpdate", kRealNumbers | kBoolType,
        &tensor_scatter<kUpdate>);
  k.add("TensorScatterAdd", kRealNumbers, &tensor_scatter<kAdd>);
  k.add("TensorScatterSub", kRealNumbers, &tensor_scatter<kSub>);
  k.add("TensorScatterMin", kRealNumbers, &tensor_scatter<kMin>);
  k.add("TensorScatterMax", kRealNumbers, &tensor_scatter<kMax>);
  k.add("ResourceScatterUpdate", kIndexTypes, &resource_scatter<kUpdate>);
  k.add("ResourceScatterAdd", kIndexTypes, &resource_scatter<kAdd>);
  k.add("ResourceScatterSub", kIndexTypes, &resource_scatter<kSub>);
  k.add("ResourceScatterMul", kIndexTypes, &resource_scatter<kMul>);
  k.add("ResourceScatterDiv", kIndexTypes, &resource_scatter<kDiv>);
  k.add("ResourceScatterMin", kIndexTypes, &resource_scatter<kMin>);
  k.add("ResourceScatterMax", kIndexTypes, &resource_scatter<kMax>);
  k.add("ResourceScatterNdUpdate", kIndexTypes, &resource_scatter_nd<kUpdate>);
  k.add("ResourceScatterNdAdd", kIndexTypes, &resource_scatter_nd<kAdd>);
  k.add("ResourceScatterNdSub", kIndexTypes, &resource_scatter_nd<kSub>);
  k.add("UnsortedSegmentSum", kRealNumbers, &segment<kAdd>);
  k.add("UnsortedSegmentProd", kRealNumbers, &segment<kMul>);
  k.add("UnsortedSegmentMin", kNumberTypes | kMoreIntegers, &segment<kMin>);
  k.add("UnsortedSegmentMax", kNumberTypes | kMoreIntegers, &segment<kMax>);
}

}  // namespace berth::gpu
