// Batch and layer norms, and their gradients.

#include <algorithm>

#include "backends/gpu/kernels.h"
#include "backends/gpu/rows.h"

namespace berth::gpu {

namespace {
namespace norm_family {

KernelSource source_of(Recipe& r) {
  return row_source(r.in_type(0),
                    {"math.cl", "real_math.cl", "norm.cl", "layer_norm.cl"});
}

// [groups, rows, channels], and how sums over rows are split.
struct Sums {
  int64_t groups, rows, channels, piece, pieces;
  int64_t size() const { return groups * channels; }
  int64_t elements() const { return groups * rows * channels; }
};

Sums sums_over(int64_t groups, int64_t all_rows, int64_t channels) {
  Sums s{groups, all_rows / groups, channels, 64, 0};
  s.pieces = std::max<int64_t>(1, ceil_div(s.rows, s.piece));
  return s;
}

Sums batch_sums(Recipe& r, const Shape& x) {
  const bool training = r.args().attr<bool>("is_training");
  const auto groups = r.args().attr<int64_t>("statistics_groups");
  const RowShape shape = rows_of(x);
  return sums_over(training ? std::max<int64_t>(1, groups) : 1, shape.rows,
                   shape.length);
}

Arg room(Recipe& r, int64_t n) {
  const size_t real = r.in_type(0) == float64 ? 8 : 4;
  return r.scratch(static_cast<size_t>(n) * real);
}

Arg epsilon_of(Recipe& r) {
  return real_value(r.in_type(0), r.args().attr<double>("epsilon"));
}

// Returns the items of PIECE_BEGIN.
int64_t piece_items(const Sums& s) { return s.groups * s.pieces * s.channels; }

// Computes moments of x, and scale / sqrt(variance + epsilon).
void moments(Recipe& r, const Sums& s, const Arg& factor) {
  const KernelSource source = source_of(r);
  const DType type = r.in_type(0);
  const int64_t n = s.size() * s.pieces;
  const Arg means = room(r, n), squares = room(r, n);
  launch_rows(r, source, "moment_pieces", s.rows ? piece_items(s) : 0, 1,
              {in(0), means, squares, value(s.groups), value(s.rows),
               value(s.channels), value(s.piece), value(s.pieces)});
  const int32_t lanes = row_lanes(r.features(), s.pieces);
  const auto count = static_cast<double>(s.rows);
  const double unbiased = count / std::max(count - 1, 1.0);
  launch_rows(r, source, "moment_fold", s.size(), lanes,
              {means, squares, in(1), out(3), out(4), factor, out(1), out(2),
               value(s.groups), value(s.rows), value(s.channels),
               value(s.piece), value(s.pieces), value(lanes), epsilon_of(r),
               real_value(type, unbiased)});
  if (s.groups == 1) return;
  const double share = 1 / static_cast<double>(s.groups);
  r.flat(source, "join_groups", s.channels,
         {out(3), out(4), out(1), out(2), value(s.groups), value(s.channels),
          real_value(type, share), real_value(type, share * unbiased)});
}

// Describes a batch norm that a library may take: training, one group.
LibraryOp library_op(Recipe& r, const Sums& s, LibraryOp::What what) {
  LibraryOp op{what, r.in_type(0)};
  const bool fits = s.groups == 1 && s.rows > 1 && s.elements() > 0 &&
                    s.elements() <= INT32_MAX && op.dtype != float64 &&
                    r.args().attr<bool>("is_training") &&
                    r.is_aligned({in(0), out(0)});
  if (!fits) return {};
  op.rows = s.rows;
  op.channels = s.channels;
  op.epsilon = r.args().attr<double>("epsilon");
  return op;
}

// Gives it to the card's library, if it has one.
bool batch_norm_by_library(Recipe& r, const Sums& s,
                           const std::function<void()>& own) {
  const LibraryOp op = library_op(r, s, LibraryOp::What::kBatchNorm);
  if (op.dtype == DType::kInvalid) return false;
  LibraryKernel kernel = r.library(op);
  if (!kernel.kernel) return false;
  const Arg inverse = room(r, s.channels);
  const auto after = [&] {
    const auto count = static_cast<double>(s.rows);
    r.flat(source_of(r), "biased_variance", s.channels,
           {out(2), out(4), value(s.channels),
            real_value(op.dtype, (count - 1) / count)});
  };
  r.launch(std::move(kernel),
           {in(0), in(1), in(2), out(0), out(3), inverse, out(1), out(2)},
           after, own);
  return true;
}

void own_batch_norm(Recipe& r, const Sums& s) {
  const KernelSource source = source_of(r);
  const Arg factor = room(r, s.size());
  Arg mean = out(3);
  if (r.args().attr<bool>("is_training")) {
    moments(r, s, factor);
  } else {
    r.flat(source, "given_moments", s.channels,
           {in(3), in(4), in(1), out(1), out(2), out(3), out(4), factor,
            value(s.channels), epsilon_of(r)});
    mean = in(3);
  }
  r.flat(source, "normalise", s.elements(),
         {in(0), mean, factor, in(2), out(0), value(s.groups), value(s.rows),
          value(s.channels)});
}

bool batch_norm(Recipe& r) {
  const Sums s = batch_sums(r, r.in_shape(0));
  const auto own = [&] { own_batch_norm(r, s); };
  if (!batch_norm_by_library(r, s, own)) own();
  return true;
}

// Folds the pieces of two sums over rows into a and b.
void fold_two(Recipe& r, const Sums& s, const Arg& a_pieces,
              const Arg& b_pieces, const Arg& a, const Arg& b) {
  const int32_t lanes = row_lanes(r.features(), s.pieces);
  launch_rows(r, source_of(r), "fold_two", s.size(), lanes,
              {a_pieces, b_pieces, a, b, value(s.groups), value(s.channels),
               value(s.pieces), value(lanes)});
}

bool batch_norm_grad_by_library(Recipe& r, const Sums& s,
                                const std::function<void()>& own) {
  const LibraryOp op = library_op(r, s, LibraryOp::What::kBatchNormGrad);
  if (op.dtype == DType::kInvalid) return false;
  LibraryKernel kernel = r.library(op);
  if (!kernel.kernel) return false;
  const Arg inverse = room(r, s.channels);
  r.flat(source_of(r), "inverse_deviation", s.channels,
         {in(4), inverse, value(s.channels), epsilon_of(r)});
  r.launch(std::move(kernel),
           {in(0), in(1), in(2), in(3), inverse, out(0), out(1), out(2)}, {},
           own);
  return true;
}

void own_batch_norm_grad(Recipe& r, const Sums& s) {
  const KernelSource source = source_of(r);
  const DType type = r.in_type(0);
  const int64_t n = s.size() * s.pieces;
  const Arg dot_pieces = room(r, n), sum_pieces = room(r, n);
  const bool joined = s.groups > 1;
  const Arg dots = joined ? room(r, s.size()) : out(1);
  const Arg sums = joined ? room(r, s.size()) : out(2);
  launch_rows(r, source, "norm_grad_pieces", piece_items(s), 1,
              {in(0), in(1), in(3), in(4), dot_pieces, sum_pieces,
               value(s.groups), value(s.rows), value(s.channels),
               value(s.piece), value(s.pieces), epsilon_of(r)});
  fold_two(r, s, dot_pieces, sum_pieces, dots, sums);
  if (joined) {
    r.flat(source, "join_groups", s.channels,
           {dots, sums, out(1), out(2), value(s.groups), value(s.channels),
            real_value(type, 1), real_value(type, 1)});
  }
  const int32_t training = r.args().attr<bool>("is_training");
  r.flat(
      source, "norm_grad", s.elements(),
      {in(0), in(1), in(2), in(3), in(4), dots, sums, out(0), value(s.groups),
       value(s.rows), value(s.channels), value(training), epsilon_of(r)});
}

bool batch_norm_grad(Recipe& r) {
  const Sums s = batch_sums(r, r.in_shape(1));
  const auto own = [&] { own_batch_norm_grad(r, s); };
  if (!batch_norm_grad_by_library(r, s, own)) own();
  return true;
}

bool layer_norm(Recipe& r) {
  const auto [rows, length] = rows_of(r.in_shape(0));
  const int32_t lanes = row_lanes(r.features(), length);
  launch_rows(r, source_of(r), "layer_norm", rows, lanes,
              {in(0), in(1), in(2), out(0), out(1), out(2), value(rows),
               value(length), value(lanes), epsilon_of(r)});
  return true;
}

bool layer_norm_grad(Recipe& r) {
  const auto [rows, length] = rows_of(r.in_shape(1));
  const KernelSource source = source_of(r);
  const int32_t lanes = row_lanes(r.features(), length);
  launch_rows(r, source, "layer_norm_grad", rows, lanes,
              {in(0), in(1), in(2), in(3), in(4), out(0), value(rows),
               value(length), value(lanes)});
  const Sums s = sums_over(1, rows, length);
  const int64_t n = s.size() * s.pieces;
  const Arg dot_pieces = room(r, n), sum_pieces = room(r, n);
  launch_rows(
      r, source, "layer_norm_pieces", piece_items(s), 1,
      {in(0), in(1), in(3), in(4), dot_pieces, sum_pieces, value(s.groups),
       value(s.rows), value(s.channels), value(s.piece), value(s.pieces)});
  fold_two(r, s, dot_pieces, sum_pieces, out(1), out(2));
  return true;
}

}  // namespace norm_family
}  // namespace

void add_norm(Kernels& k) {
  using namespace norm_family;  // NOLINT: the functions of this file
  k.add("FusedBatchNormV3", kRealFloats, &batch_norm);
  k.add("FusedBatchNormGradV3", kRealFloats, &batch_norm_grad);
  k.add("LayerNorm", kRealFloats, &layer_norm);
  k.add("LayerNormGrad", kRealFloats, &layer_norm_grad);
}

}  // namespace berth::gpu
