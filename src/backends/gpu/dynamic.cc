// Where and Unique: only the device knows how much of a result is valid.

#include <fmt/format.h>

#include <limits>

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"
#include "backends/gpu/sort_scan_util.h"

namespace berth::gpu {

namespace {
namespace dynamics {

KernelSource select_source(DType dtype) {
  return storage_source(dtype, {"select.cl"});
}

// VALUE_... of kernels/select.cl.
int32_t value_kind(DType dtype) { return is_floating(dtype) ? 1 : 0; }

size_t bytes_of(const Recipe& r, int output) {
  return static_cast<size_t>(r.out_shape(output).num_elements()) *
         size_of(r.out_type(output));
}

Arg flags_for(Recipe& r, int64_t n) {
  return r.scratch(static_cast<size_t>(n) * sizeof(uint32_t));
}

std::vector<std::string> too_many_text(const Recipe& r, const char* what) {
  return {
      fmt::format("{}: there are more {} than max_size, {{0}}; expected a "
                  "larger max_size",
                  r.args().op->name(), what)};
}

bool too_long(int64_t n) { return n >= std::numeric_limits<int32_t>::max(); }

bool where(Recipe& r) {
  const Shape& shape = r.in_shape(0);
  const int64_t n = shape.num_elements();
  if (too_long(n)) return false;
  r.fill(out(0), 0, bytes_of(r, 0));
  if (n == 0) {
    r.fill(out(1), 0, sizeof(int64_t));
    return true;
  }
  Strided axes;
  for (int d = 0; d < shape.rank(); ++d) axes.n[axes.rank++] = shape[d];
  const int32_t kind = value_kind(r.in_type(0));
  const KernelSource source = select_source(r.in_type(0));
  const Arg before = flags_for(r, n);
  r.flat(source, "flag_true", n, {before, in(0), value(kind), value(n)});
  sum_before(r, before, n);
  r.flat(source, "write_true", n,
         {out(0), out(1), in(0), before, value(kind), value(axes),
          value(r.out_shape(0)[0]), value(narrow_walk(n)), value(n),
          r.fault(too_many_text(r, "true elements"))});
  return true;
}

bool unique(Recipe& r) {
  const int64_t n = r.in_shape(0).num_elements();
  if (too_long(n)) return false;
  const bool counts = r.num_out() == 4;
  const int size = r.num_out() - 1;
  r.fill(out(0), 0, bytes_of(r, 0));
  if (counts) r.fill(out(2), 0, bytes_of(r, 2));
  if (n == 0) {
    r.fill(out(size), 0, sizeof(int64_t));
    return true;
  }
  const DType dtype = r.in_type(0);
  const int32_t kind = value_kind(dtype);
  const KernelSource source = select_source(dtype);
  const Arg keys = r.scratch(static_cast<size_t>(n) * sizeof(uint64_t));
  r.flat(source, "keys_of_values", n, {keys, in(0), value(kind), value(n)});
  const SortedKeys sorted =
      sort_keys(r, keys, n, static_cast<int>(8 * size_of(dtype)));
  const Arg heads = flags_for(r, n), firsts = flags_for(r, n);
  const Arg starts = flags_for(r, n + 1);
  r.fill(firsts, 0, static_cast<size_t>(n) * sizeof(uint32_t));
  r.flat(source, "flag_runs", n,
         {heads, firsts, sorted.keys, sorted.places, value(kind), value(n)});
  sum_before(r, heads, n);
  sum_before(r, firsts, n);
  r.flat(source, "run_starts", n,
         {starts, heads, sorted.keys, value(kind), value(n)});
  const int32_t wide = r.args().attr<DType>("out_idx") == int64 ? 1 : 0;
  r.flat(source, "write_unique", n,
         {out(0), out(1), counts ? out(2) : no_buffer(),
          value(int32_t{counts ? 1 : 0}), value(wide), out(size), in(0),
          sorted.keys, sorted.places, heads, starts, firsts, value(kind),
          value(r.out_shape(0)[0]), value(n),
          r.fault(too_many_text(r, "different elements"))});
  return true;
}

}  // namespace dynamics
}  // namespace

void add_dynamic(Kernels& k) {
  k.add("Where", kRealNumbers | kBoolType, &dynamics::where);
  k.add("Unique", kNumberTypes | kMoreIntegers, &dynamics::unique);
  k.add("UniqueWithCounts", kNumberTypes | kMoreIntegers, &dynamics::unique);
}

}  // namespace berth::gpu
