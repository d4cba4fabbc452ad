// Rows of bench_ops: an op of the registry, its inputs by size, and its name
// in bench/ops.py. Every op that computes has a row or a reason (updates.cc).

#ifndef BERTH_BENCH_OPS_ROWS_H_
#define BERTH_BENCH_OPS_ROWS_H_

#include <functional>
#include <string>
#include <vector>

#include "berth/berth.h"
#include "op/attrs.h"

namespace berth_bench {

using berth::DType;
using berth::Shape;
using berth::Tensor;
using berth::Tensors;
using Ints = std::vector<int64_t>;
using Pairs = std::vector<berth::Attrs::Pair>;
using Types = std::vector<DType>;

inline const Types kFloats = {berth::float32};
inline const Types kInts = {berth::int32, berth::int64};
inline const Types kNumbers = {berth::float32, berth::int32, berth::int64};
inline const Types kAll = {berth::float32, berth::int32, berth::int64,
                           berth::bool_};
inline const Types kBools = {berth::bool_};

// One call: variables come first among the op's inputs. With `fn`, that is
// called in place of the op.
struct Call {
  Tensors in;
  Pairs attrs = {};
  std::vector<berth::Variable> variables = {};
  std::function<Tensor(const Tensors&)> fn = {};
};

struct Row {
  std::string op;    // of the registry
  std::string name;  // of the row
  Types types;
  // About side * side elements.
  std::function<Call(DType, int64_t side)> make;
};
using Rows = std::vector<Row>;

struct Named {
  const char* op;
  const char* name;
};

// In [low, high): floats in (0.5, 2.5) and whole numbers in [1, 1000) unless
// told.
Tensor values(DType dtype, const Shape& shape, double low = 0, double high = 0);
// Random whole numbers in [0, below).
Tensor places(DType dtype, const Shape& shape, int64_t below);
// Returns [n, h, w, c], about side * side elements.
Shape image(int64_t side);

// An op of `arity` inputs [side, side].
void add(Rows& rows, const char* op, const std::string& name,
         const Types& types, int arity = 1, const Pairs& attrs = {},
         double low = 0, double high = 0);
void add(Rows& rows, const char* op, const std::string& name,
         const Types& types, std::function<Call(DType, int64_t)> make);

void add_elementwise(Rows& rows);
void add_arrays(Rows& rows);
void add_indexing(Rows& rows);
void add_networks(Rows& rows);
void add_updates(Rows& rows);
Rows all_rows();

// Ops that are not timed alone, and why.
struct Skipped {
  const char* op;
  const char* why;
};
const std::vector<Skipped>& skipped_ops();

}  // namespace berth_bench

#endif  // BERTH_BENCH_OPS_ROWS_H_
