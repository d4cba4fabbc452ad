// Ops of shapes, whose results are known before anything runs.

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"

namespace berth::gpu {

namespace {
namespace known_shapes {

using Ints = std::vector<int64_t>;

// Appends numbers that are known now to output 0.
template <class T>
void put(Recipe& r, const std::vector<T>& numbers) {
  struct {
    unsigned char b[64];
  } bytes = {};
  const auto n = static_cast<int64_t>(numbers.size() * sizeof(T));
  if (n > 0) std::memcpy(bytes.b, numbers.data(), static_cast<size_t>(n));
  r.flat(storage_source(uint8, {"move.cl"}), "put_bytes", n,
         {out(0), value(bytes), value(n)});
}

void put_indices(Recipe& r, const Ints& numbers) {
  if (r.out_type(0) == int64) return put(r, numbers);
  put(r, std::vector<int32_t>(numbers.begin(), numbers.end()));
}

bool shape_of(Recipe& r) {
  put_indices(r, Ints(r.in_shape(0).begin(), r.in_shape(0).end()));
  return true;
}
bool size_of_input(Recipe& r) {
  put_indices(r, {r.in_shape(0).num_elements()});
  return true;
}
bool rank_of(Recipe& r) {
  put_indices(r, {r.in_shape(0).rank()});
  return true;
}

bool size_ratio(Recipe& r) {
  const double ratio = static_cast<double>(r.in_shape(0).num_elements()) /
                       static_cast<double>(r.in_shape(1).num_elements());
  fill_elements(r, r.out_type(0), out(0), bits_of(r.out_type(0), ratio), 1);
  return true;
}

}  // namespace known_shapes
}  // namespace

void add_known_shapes(Kernels& k) {
  const DTypeSet known = kEveryType;
  k.add("Shape", known, &known_shapes::shape_of);
  k.add("Size", known, &known_shapes::size_of_input);
  k.add("Rank", known, &known_shapes::rank_of);
  k.add("SizeRatio", kRealFloats | kComplexTypes, &known_shapes::size_ratio);
}

}  // namespace berth::gpu
