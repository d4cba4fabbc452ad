// Case: one call of one op as data, from which every mode is made.
//
// Families list their cases in conformance/ops/<family>.cc. A case names the
// shapes, what fills the inputs, the attributes, and which modes do not apply
// and why. Inputs are pure functions of the case's name. One thread.

#ifndef BERTH_CONFORMANCE_CASE_H_
#define BERTH_CONFORMANCE_CASE_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/array.h"
#include "op/attrs.h"
#include "op/op_def.h"

namespace berth::conformance {

// kGrad2 is the gradient of the gradient.
enum class Mode { kTest, kGrad, kGrad2, kSplit, kPerf };

enum class Fill {
  kUniform,   // in [low, high]
  kNotZero,   // the same, at least 0.2 away from 0
  kDistinct,  // evenly spaced in [low, high], shuffled: no ties
  kWhole,     // whole numbers from low to high
  kSpecial,   // NaN, infinities, both zeros, the largest and smallest numbers
  kShares,    // positive, rows of the last axis sum to 1
  kValues,    // as given, repeated
  kDerived,   // computed from the inputs before it
};

using Derive = std::function<Array(const Arrays& before)>;

struct Input {
  Shape shape;
  DType dtype = DType::kInvalid;  // invalid: the dtype of the run
  Fill fill = Fill::kUniform;
  double low = -2, high = 2;
  std::vector<double> values = {};
  Derive derive = {};
  bool variable = false;         // a Variable of this shape
  std::string no_gradient = {};  // why no gradient flows to it, if none does

  Input(Shape s) : shape(s) {}                           // NOLINT: {3, 4}
  Input(std::initializer_list<int64_t> s) : shape(s) {}  // NOLINT
  Input uniform(double lo, double hi) const;
  Input not_zero() const;
  Input distinct() const;
  Input whole(double lo, double hi, DType dtype = DType::kInvalid) const;
  Input boolean() const;
  Input special() const;
  Input shares() const;
  Input of(std::vector<double> values) const;
  // Follows the inputs before it, also when those are varied.
  Input derived(Derive derive) const;
  Input as(DType dtype) const;
  Input as_variable() const;
  Input without_gradient(std::string why) const;
};

struct Case {
  std::string op;
  std::string label;
  std::vector<Input> inputs = {};
  std::vector<Attrs::Pair> attrs = {};
  // Attributes whose value is the dtype of the run.
  std::vector<std::string> dtype_attrs = {};
  DTypeSet dtypes = dtype_bit(float32) | dtype_bit(float64);
  // Of float32 against the float64 reference.
  Tolerance tolerance = {1e-5, 1e-6};
  // Of float32 gradients, scaled by the largest of them.
  double gradient_tolerance = 1e-3;
  // How far an element is moved for a difference.
  double step = 1e-5;
  // Gradients flow through the first so many outputs; -1: through all.
  int gradient_outputs = -1;
  std::map<Mode, std::string> skipped = {};  // why
  bool host_only = false;  // accelerators leave it to a host device
  // Why the rank of a result is not known when a dimension is not, if so.
  std::string needs_dimensions = {};
  bool perf = false;  // large: run by --mode=perf only

  Case& input(Input i);
  Case& attr(std::string name, AttrValue value);
  Case& dtype_attr(std::string name);
  Case& types(DTypeSet set);
  Case& close_to(double rtol, double atol);
  Case& skip(Mode mode, std::string why);
  // No gradient mode: of both orders.
  Case& skip_gradients(std::string why);
  Case& step_of(double step);
  Case& gradient_through(int outputs);
  Case& known_dimensions_only(std::string why);
  Case& perf_only();

  const OpDef& def() const { return op_named(op); }
  AttrsRef attrs_for(DType dtype) const;
  // "3x4,4x5,transpose_a" unless a label was given.
  std::string name() const;
};

// Cases in order; references stay valid.
class Cases {
 public:
  // Adds a case; `label` tells it from other cases of the op.
  Case& add(std::string op, std::string label, std::vector<Input> inputs);
  const std::deque<Case>& all() const { return cases_; }

 private:
  std::deque<Case> cases_;
};

// Every case; what the families of conformance/ops add.
const Cases& all_cases();

// Returns the inputs of a case for a run with `dtype`.
Arrays make_inputs(const Case& c, DType dtype);
// Computes the derived inputs again, after others were varied.
void rederive(const Case& c, Arrays* in);

// One random number generator per purpose: uniform in [low, high].
class Random {
 public:
  explicit Random(const std::string& name);
  double uniform(double low, double high);
  uint64_t word();

 private:
  uint64_t state_;
};

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_CASE_H_
