// InferContext: what a shape rule, a cost rule and a split rule see.
//
// Inputs as (dtype, shape), attributes, and the outputs to fill. Dimensions
// may be unknown (negative): a rule passes them on and never fails because of
// them. Lives on the caller's stack; one thread.

#ifndef BERTH_OP_INFER_H_
#define BERTH_OP_INFER_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/shape.h"
#include "op/attrs.h"

namespace berth {

class OpDef;
struct SplitSignature;

// Dtype and shape of a value, the shape owned elsewhere.
// A variable's handle has dtype resource, the variable's shape, and the
// variable's own dtype in `variable`.
struct SpecView {
  DType dtype = DType::kInvalid;
  const Shape* shape = nullptr;
  DType variable = DType::kInvalid;
};

struct OutSpec {
  DType dtype = DType::kInvalid;
  Shape shape;
  DType variable = DType::kInvalid;

  SpecView view() const { return {dtype, &shape, variable}; }
  bool operator==(const OutSpec&) const = default;
};

class InferContext {
 public:
  InferContext(const OpDef& op, const Attrs* attrs,
               std::span<const SpecView> in, std::span<OutSpec> out)
      : op_(op), attrs_(attrs), in_(in), out_(out) {}

  const OpDef& op() const { return op_; }
  const Attrs* attrs() const { return attrs_; }
  int num_inputs() const { return static_cast<int>(in_.size()); }
  int num_outputs() const { return static_cast<int>(out_.size()); }
  const Shape& shape(int i) const { return *in_[i].shape; }
  DType dtype(int i) const { return in_[i].dtype; }
  // The dtype of the variable that input i names.
  DType variable_dtype(int i) const { return in_[i].variable; }
  template <class T>
  const T& attr(std::string_view name) const;  // defined in op/op_def.h

  void set_output(int i, DType dtype, const Shape& shape) {
    out_[i].dtype = dtype;
    out_[i].shape = shape;
  }
  void set_variable_output(int i, DType variable, const Shape& shape) {
    set_output(i, resource, shape);
    out_[i].variable = variable;
  }
  const OutSpec& output(int i) const { return out_[i]; }

  // Throws errors::InvalidArgument "<op>: <message>"; the caller adds where.
  [[noreturn]] void fail(const std::string& message) const;
  // Fails unless input i has rank `rank`; `dims` describes it ("[n, c]").
  void expect_rank(int i, int rank, const char* dims) const;
  // Returns the dimension that two must agree on (unknowns give way); fails
  // with `message` when they differ.
  int64_t merge_dims(int64_t a, int64_t b, const std::string& message) const;

 private:
  const OpDef& op_;
  const Attrs* attrs_;
  std::span<const SpecView> in_;
  std::span<OutSpec> out_;
};

// Ready-made shape rules.
void infer_same_as_0(InferContext& c);  // output 0 like input 0
void infer_broadcast(InferContext& c);  // output 0: broadcast of inputs
void infer_compare(InferContext& c);    // the same, dtype bool
// Returns the broadcast of two shapes (NumPy's rule). Fails naming `c`'s op.
Shape broadcast_shapes(const InferContext& c, const Shape& a, const Shape& b);

// Ready-made split rules.
// Every axis that is not broadcast, for any number of inputs and outputs.
std::vector<SplitSignature> split_elementwise(const InferContext& c);

// Runs the shape rule of an op over given inputs, after checking count and
// dtypes of the inputs against the schema. Throws errors::InvalidArgument.
void infer_outputs(const OpDef& op, const Attrs* attrs,
                   std::span<const SpecView> in, std::span<OutSpec> out);

}  // namespace berth

#endif  // BERTH_OP_INFER_H_
