// Softmax, masked too, and the cross entropies.

#include <fmt/format.h>

#include "backends/gpu/kernels.h"
#include "backends/gpu/rows.h"

namespace berth::gpu {

namespace {
namespace softmax_family {

KernelSource source_of(Recipe& r) {
  return row_source(r.in_type(0), {"math.cl", "real_math.cl", "softmax.cl"});
}

Arg flag(bool on) { return value(static_cast<int32_t>(on)); }

bool softmax_rows(Recipe& r, const char* kernel) {
  const auto [rows, length] = rows_of(r.in_shape(0));
  const int32_t lanes = row_lanes(r.features(), length);
  if (length == 0) return true;
  launch_rows(r, source_of(r), kernel, rows, lanes,
              {in(0), out(0), value(rows), value(length), value(lanes)});
  return true;
}
bool softmax(Recipe& r) { return softmax_rows(r, "softmax"); }
bool log_softmax(Recipe& r) { return softmax_rows(r, "log_softmax"); }

// Returns the walk over the rows of `x` that reads a mask broadcast to it, and
// the step from column to column.
Strided mask_rows(const Shape& mask, const Shape& x, int64_t* step) {
  int64_t strides[kMaxRank] = {};
  int64_t stride = 1;
  for (int d = mask.rank() - 1; d >= 0; --d) {
    strides[d + x.rank() - mask.rank()] = mask[d] == 1 ? 0 : stride;
    stride *= mask[d];
  }
  *step = strides[x.rank() - 1];
  Shape rows = x;
  rows.erase(x.rank() - 1);
  return strided(rows, strides);
}

bool masked_softmax(Recipe& r) {
  const Shape& x = r.in_shape(0);
  const auto [rows, length] = rows_of(x);
  if (rows == 0 || length == 0) return true;
  const bool masked = r.num_in() == 2;
  int64_t step = 0;
  const Strided walk = masked ? mask_rows(r.in_shape(1), x, &step) : Strided{};
  const int32_t lanes = row_lanes(r.features(), length);
  launch_rows(
      r, source_of(r), "masked_softmax", rows, lanes,
      {in(0), masked ? in(1) : no_buffer(), out(0), value(walk), value(step),
       value(rows), value(length), value(x[x.rank() - 2]), value(lanes),
       flag(r.args().attr<bool>("is_causal")), flag(masked),
       real_value(r.in_type(0), r.args().attr<double>("scale"))});
  return true;
}

bool cross_entropy(Recipe& r) {
  const auto [rows, length] = rows_of(r.in_shape(0));
  const int32_t lanes = row_lanes(r.features(), length);
  launch_rows(
      r, source_of(r), "cross_entropy", rows, lanes,
      {in(0), in(1), out(0), out(1), value(rows), value(length), value(lanes)});
  return true;
}

bool sparse_cross_entropy(Recipe& r) {
  const auto [rows, length] = rows_of(r.in_shape(0));
  const int32_t lanes = row_lanes(r.features(), length);
  const Arg fault = r.fault({fmt::format(
      "{}: label {{0}} in row {{1}}; expected 0 <= label < {{2}}, the number "
      "of classes: check the last layer's size and the labels",
      r.args().op->name())});
  launch_rows(r, source_of(r), "sparse_cross_entropy", rows, lanes,
              {in(0), in(1), in(1), out(0), out(1), fault, value(rows),
               value(length), value(lanes), flag(r.in_type(1) == int64)});
  return true;
}

bool in_top_k(Recipe& r) {
  const auto [rows, length] = rows_of(r.in_shape(0));
  const int32_t lanes = row_lanes(r.features(), length);
  launch_rows(r, source_of(r), "in_top_k", rows, lanes,
              {in(0), in(1), in(1), out(0), value(rows), value(length),
               value(r.args().attr<int64_t>("k")), value(lanes),
               flag(r.in_type(1) == int64)});
  return true;
}

}  // namespace softmax_family
}  // namespace

void add_softmax(Kernels& k) {
  using namespace softmax_family;  // NOLINT: the functions of this file
  k.add("Softmax", kRealFloats, &softmax);
  k.add("LogSoftmax", kRealFloats, &log_softmax);
  k.add("MaskedSoftmax", kRealFloats, &masked_softmax);
  k.add("SoftmaxCrossEntropyWithLogits", kRealFloats, &cross_entropy);
  k.add("SparseSoftmaxCrossEntropyWithLogits", kRealFloats,
        &sparse_cross_entropy);
  k.add("InTopKV2", kRealFloats, &in_top_k);
}

}  // namespace berth::gpu
