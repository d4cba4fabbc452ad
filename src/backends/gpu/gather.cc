// Ops that select elements by indices.

#include <fmt/format.h>

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"
#include "backends/gpu/sort_scan_util.h"

namespace berth::gpu {

namespace {
namespace gathering {

KernelSource gather_source(DType dtype) {
  return storage_source(dtype, {"gather.cl"});
}

bool gather(Recipe& r) {
  const Shape &params = r.in_shape(0), &indices = r.in_shape(1);
  const int axis =
      normalize_axis(r.args().attr<int64_t>("axis"), params.rank(), "GatherV2");
  auto batch = static_cast<int>(r.args().attr<int64_t>("batch_dims"));
  if (batch < 0) batch += indices.rank();
  const int64_t outer = elements_between(params, batch, axis);
  const int64_t inner = elements_between(params, axis + 1, params.rank());
  const int64_t n = elements_between(indices, batch, indices.rank());
  const int64_t dim = params[axis], total = r.out_shape(0).num_elements();
  const int32_t kind = index_kind(r.in_type(1));
  const Arg fault = r.fault(index_texts(r, params, axis));
  const KernelSource source = gather_source(r.in_type(0));
  if (total == 0) {  // bad indices are still errors
    const int64_t all = indices.num_elements();
    r.flat(source, "check_indices", all,
           {in(1), value(kind), value(dim), value(all), fault});
    return true;
  }
  r.flat(source, "gather_rows", total,
         {out(0), in(0), in(1), value(kind), value(dim), value(inner), value(n),
          value(outer), value(narrow_walk(total)), value(total), fault});
  return true;
}

bool gather_nd(Recipe& r) {
  const Shape& params = r.in_shape(0);
  const Coordinates c = coordinates_of(r, 1, params, 1);
  const int64_t inner = elements_between(params, c.depth, params.rank());
  const int64_t rows = coordinate_rows(r.in_shape(1));
  const Arg fault = r.fault(coordinate_texts(r, 1, params));
  const KernelSource source = gather_source(r.in_type(0));
  if (inner == 0) {
    r.flat(source, "check_places", rows, {in(1), value(c), value(rows), fault});
    return true;
  }
  const int64_t items = rows * inner;
  r.flat(source, "gather_places", items,
         {out(0), in(0), in(1), value(c), value(inner),
          value(narrow_walk(items)), value(items), fault});
  return true;
}

bool one_hot(Recipe& r) {
  const Shape& to = r.out_shape(0);
  const int axis =
      normalize_axis(r.args().attr<int64_t>("axis"), to.rank(), "OneHot");
  const int64_t inner = elements_between(to, axis + 1, to.rank());
  const int64_t n = r.in_shape(0).num_elements();
  const DType dtype = r.out_type(0);
  const ElementBits on = bits_of(dtype, r.args().attr<double>("on_value"));
  const ElementBits off = bits_of(dtype, r.args().attr<double>("off_value"));
  fill_elements(r, dtype, out(0), off, to.num_elements());
  r.flat(gather_source(dtype), "one_hot", n,
         {out(0), in(0), value(index_kind(r.in_type(0))), value(to[axis]),
          value(inner), value(on), value(n)});
  return true;
}

bool invert_permutation(Recipe& r) {
  const int64_t n = r.in_shape(0).num_elements();
  const DType dtype = r.in_type(0);
  const int32_t kind = index_kind(dtype);
  std::vector<std::string> texts = index_texts(r, r.in_shape(0), 0);
  texts.emplace_back(
      "InvertPermutation: {0} appears twice, also at place {1}; expected each "
      "of 0 to {2} once");
  const Arg fault = r.fault(std::move(texts));
  const KernelSource source = gather_source(dtype);
  r.fill(out(0), 0xff, static_cast<size_t>(n) * size_of(dtype));
  r.flat(source, "invert", n, {out(0), in(0), value(kind), value(n), fault});
  r.flat(source, "check_inverse", n,
         {out(0), in(0), value(kind), value(n), fault});
  return true;
}

}  // namespace gathering
}  // namespace

void add_scatter(Kernels& k);  // scatter.cc
void add_dynamic(Kernels& k);  // dynamic.cc

void add_gather(Kernels& k) {
  k.add("GatherV2", kEveryType, &gathering::gather);
  k.add("GatherNd", kEveryType, &gathering::gather_nd);
  k.add("OneHot", kIntegerTypes, &gathering::one_hot);
  k.add("InvertPermutation", kIndexTypes, &gathering::invert_permutation);
  add_scatter(k);
  add_dynamic(k);
}

}  // namespace berth::gpu
