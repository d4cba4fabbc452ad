#include "op/infer.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/op_def.h"

namespace berth {

void InferContext::fail(const std::string& message) const {
  throw errors::InvalidArgument(
      fmt::format("{}: {}{}", op_.name(), message, where_text()));
}

void InferContext::expect_rank(int i, int rank, const char* dims) const {
  if (shape(i).rank() == rank) return;
  fail(fmt::format("{} has shape {}; expected {}", op_.input(i).name,
                   shape(i).str(), dims));
}

int64_t InferContext::merge_dims(int64_t a, int64_t b,
                                 const std::string& message) const {
  if (a == b || b < 0) return a;
  if (a < 0) return b;
  fail(message);
}

void infer_same_as_0(InferContext& c) {
  c.set_output(0, c.dtype(0), c.shape(0));
}

Shape broadcast_shapes(const InferContext& c, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  const int shift = longer.rank() - shorter.rank();
  Shape out = longer;
  for (int i = 0; i < shorter.rank(); ++i) {
    const int64_t x = longer[i + shift], y = shorter[i];
    if (x == y || y == 1) continue;
    if (x == 1) {
      out[i + shift] = y;
    } else if (x < 0 || y < 0) {
      // One is unknown: it is the other, or 1.
      out[i + shift] = x < 0 ? (y < 0 ? kUnknownDim : y) : x;
    } else {
      c.fail(
          fmt::format("shapes {} and {} do not broadcast: {} against {}; "
                      "expected equal dimensions or 1",
                      a.str(), b.str(), x, y));
    }
  }
  return out;
}

void infer_broadcast(InferContext& c) {
  Shape shape = c.shape(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    shape = broadcast_shapes(c, shape, c.shape(i));
  }
  c.set_output(0, c.dtype(0), shape);
}

void infer_compare(InferContext& c) {
  infer_broadcast(c);
  c.set_output(0, bool_, Shape(c.output(0).shape));
}

std::vector<SplitSignature> split_elementwise(const InferContext& c) {
  std::vector<SplitSignature> rules;
  const Shape& out = c.output(0).shape;
  for (int axis = 0; axis < out.rank(); ++axis) {
    if (out[axis] == 1) continue;
    SplitSignature rule;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const int own = axis - (out.rank() - c.shape(i).rank());
      const bool broadcast = own < 0 || c.shape(i)[own] == 1;
      rule.inputs.push_back(broadcast ? SplitSignature::kWhole
                                      : static_cast<int8_t>(own));
    }
    rule.outputs.assign(static_cast<size_t>(c.num_outputs()),
                        static_cast<int8_t>(axis));
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::string dtype_list(DTypeSet set) {
  std::string s;
  for (int d = 1; d < kNumDTypes; ++d) {
    if (!(set >> d & 1)) continue;
    if (!s.empty()) s += ", ";
    s += name_of(static_cast<DType>(d));
  }
  return s;
}

namespace {

void check_inputs(const InferContext& c) {
  const OpDef& op = c.op();
  const int n = c.num_inputs(), want = static_cast<int>(op.inputs().size());
  if (n < op.min_inputs() || (n > want && !op.variadic())) {
    const int least = op.min_inputs();
    c.fail(fmt::format("{} inputs given; expected {}{}", n, least,
                       op.variadic()  ? " or more"
                       : least < want ? fmt::format(" to {}", want)
                                      : ""));
  }
  DType common = DType::kInvalid;
  int first = 0;  // the argument that set it
  for (int i = 0; i < n; ++i) {
    const ArgDef& arg = op.input(i);
    DType d = c.dtype(i);
    if (!(arg.types & dtype_bit(d))) {
      const bool number = d != string_ && d != resource && d != variant;
      const bool real = (arg.types & dtype_bit(float32)) != 0;
      c.fail(fmt::format(
          "{} is {}; expected one of {}{}", arg.name, name_of(d),
          dtype_list(arg.types),
          !number ? ""
          : real  ? fmt::format(": write math::cast({}, float32)", arg.name)
                  : ": write math::cast"));
    }
    if (d == resource) d = c.variable_dtype(i);
    if (arg.free_dtype || d == DType::kInvalid) continue;
    if (common == DType::kInvalid) {
      common = d;
      first = i;
    }
    if (d != common) {
      c.fail(fmt::format(
          "{} is {} but {} is {}; expected equal dtypes: write "
          "math::cast",
          op.input(first).name, name_of(common), arg.name, name_of(d)));
    }
  }
}

}  // namespace

// Bytes of any dtype can still be counted.
constexpr int64_t kMaxElements = int64_t{1} << 60;

void infer_outputs(const OpDef& op, const Attrs* attrs,
                   std::span<const SpecView> in, std::span<OutSpec> out) {
  InferContext c(op, attrs, in, out);
  try {
    check_inputs(c);
    op.infer()(c);
    for (const OutSpec& o : out) {
      if (o.shape.num_elements() < kMaxElements) continue;
      c.fail(
          fmt::format("shape {} has too many elements; expected fewer than "
                      "2^60",
                      o.shape.str()));
    }
  } catch (const errors::Error& e) {
    raise_with_place(e, t_state.layer, t_state.site);
  }
}

}  // namespace berth
