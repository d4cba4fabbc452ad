// OpDef: everything the engine knows about one op, registered in one place.
//
// Schema, shape rule, gradient, cost, split rule, decomposition and placement
// traits stand beside the public wrapper in src/ops; all facts about an op are
// read here. Immutable once registered; thread-safe.

#ifndef BERTH_OP_OP_DEF_H_
#define BERTH_OP_OP_DEF_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "op/attrs.h"
#include "op/infer.h"

namespace berth {

// A set of dtypes, one bit per DType.
using DTypeSet = uint32_t;
constexpr DTypeSet dtype_bit(DType d) {
  const int i = static_cast<int>(d);
  return i < kNumDTypes ? 1u << i : 0;  // none for an invalid dtype
}
inline constexpr DTypeSet kFloatingTypes =
    dtype_bit(float32) | dtype_bit(float64);
inline constexpr DTypeSet kIntegerTypes =
    dtype_bit(int32) | dtype_bit(int64) | dtype_bit(uint8);
inline constexpr DTypeSet kNumberTypes = kFloatingTypes | kIntegerTypes;
inline constexpr DTypeSet kBoolType = dtype_bit(bool_);
inline constexpr DTypeSet kAllTypes = kNumberTypes | kBoolType;
inline constexpr DTypeSet kIndexTypes = dtype_bit(int32) | dtype_bit(int64);
inline constexpr DTypeSet kResourceType = dtype_bit(resource);
// The types that ops take only where their schema says so. Reference kernels
// of them come from those of a wider type (backends/reference/widened.h).
inline constexpr DTypeSet kHalfTypes = dtype_bit(bfloat16) | dtype_bit(float16);
inline constexpr DTypeSet kComplexTypes =
    dtype_bit(complex64) | dtype_bit(complex128);
inline constexpr DTypeSet kMoreIntegers = dtype_bit(int8) | dtype_bit(int16) |
                                          dtype_bit(uint16) |
                                          dtype_bit(uint32) | dtype_bit(uint64);
inline constexpr DTypeSet kStringType = dtype_bit(string_);
inline constexpr DTypeSet kVariantType = dtype_bit(variant);
// The families above with them: fractions, whole numbers, numbers with an
// order, what has roots and exponentials, whatever adds and multiplies,
// whatever has bytes.
inline constexpr DTypeSet kRealFloats = kFloatingTypes | kHalfTypes;
inline constexpr DTypeSet kEveryInteger = kIntegerTypes | kMoreIntegers;
inline constexpr DTypeSet kRealNumbers = kRealFloats | kEveryInteger;
inline constexpr DTypeSet kInexactTypes = kRealFloats | kComplexTypes;
inline constexpr DTypeSet kEveryNumber = kRealNumbers | kComplexTypes;
inline constexpr DTypeSet kEveryType = kEveryNumber | kBoolType;
// "any" in a graph text: every dtype.
inline constexpr DTypeSet kAnyType =
    kEveryType | kStringType | kResourceType | kVariantType;

// "float32, float64".
std::string dtype_list(DTypeSet set);

enum class Access : uint8_t {
  kValue,
  kReadsVariable,
  kWritesVariable,      // from its old value
  kOverwritesVariable,  // whatever it was
};
inline bool writes(Access a) { return a >= Access::kWritesVariable; }

struct ArgDef {
  std::string name;
  DTypeSet types = kEveryType;
  Access access = Access::kValue;
  bool variadic = false;    // the last argument may repeat, at least once
  bool free_dtype = false;  // need not equal the dtype of the first value
  bool optional = false;    // may be absent, with all after it
  bool ref = false;         // a reference to a buffer of its producer's device
  bool on_host = false;     // read on the host, whatever the op's device
};

struct AttrDef {
  std::string name;
  AttrValue default_value;
  bool required = false;
};

// What a gradient rule sees: the forward call and the incoming gradients.
class GradCall {
 public:
  GradCall(const OpDef& op, const Attrs* attrs, std::span<const Tensor> in,
           std::span<const Tensor> out, std::span<const Tensor> grads,
           const std::vector<bool>& needed)
      : op_(op),
        attrs_(attrs),
        in_(in),
        out_(out),
        grads_(grads),
        needed_(needed) {}

  const OpDef& op() const { return op_; }
  const Attrs* attrs() const { return attrs_; }
  int num_inputs() const { return static_cast<int>(in_.size()); }
  const Tensor& x(int i) const { return in_[i]; }
  const Tensor& y(int i = 0) const { return out_[i]; }
  // The gradient of output i; zeros when nothing depends on it.
  Tensor dy(int i = 0) const;
  // False when nothing depends on output i.
  bool has_dy(int i) const { return grads_[i].defined(); }
  // False when nobody asks for the gradient of input i.
  bool needs(int i) const { return needed_[i]; }
  template <class T>
  T attr(std::string_view name) const;

 private:
  const OpDef& op_;
  const Attrs* attrs_;
  std::span<const Tensor> in_;
  std::span<const Tensor> out_;
  std::span<const Tensor> grads_;
  const std::vector<bool>& needed_;
};

struct Cost {
  double flops = 0;
  double bytes = 0;  // read and written
};

// One way to compute an op in parts: per input and output the axis along
// which it is split, or kWhole (every part has all of it), or, for outputs,
// kPartialSum (the parts add up). OneFlow's SBP algebra.
struct SplitSignature {
  static constexpr int8_t kWhole = -1;
  static constexpr int8_t kPartialSum = -2;
  std::vector<int8_t> inputs;
  std::vector<int8_t> outputs;
};

enum class OpKind : uint8_t {
  kCompute,       // a kernel or a decomposition computes it
  kAlias,         // output 0 is input 0's bytes under another shape
  kReadVariable,  // output 0 is the variable's value
  kCall,          // runs the Callable attribute "f"
  kControl,       // If, While: runs Callable attributes (op/control_flow.h)
  // Graphs only (OpDef::graph_only()):
  kArgument,      // of the function
  kConstant,      // output 0 is the attribute "value"
  kHandle,        // of a variable
  kHandleRange,   // of some elements of the variable that input 0 names
  kTransfer,      // input 0 on another device
  kCrossReplica,  // a replica meets the others here
};

using InferFn = void (*)(InferContext& c);
using GradientFn = Tensors (*)(const GradCall& call);
using DecomposeFn = Tensors (*)(std::span<const Tensor> in, const OpDef& op,
                                const Attrs* attrs);
using CostFn = Cost (*)(const InferContext& c);
using SplitFn = std::vector<SplitSignature> (*)(const InferContext& c);
using NumOutputsFn = int (*)(const OpDef& op, const Attrs* attrs);

class OpDef {
 public:
  const std::string& name() const { return name_; }
  uint16_t id() const { return id_; }
  OpKind kind() const { return kind_; }
  const std::vector<ArgDef>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  const std::vector<AttrDef>& attrs() const { return attrs_; }
  // Flags of output i; those of a repeated last output hold for all of them.
  bool output_is_ref(int i) const { return flag(ref_outputs_, i); }
  bool output_on_host(int i) const { return flag(host_outputs_, i); }
  const ArgDef& input(int i) const {
    const int last = static_cast<int>(inputs_.size()) - 1;
    return inputs_[i < last ? i : last];
  }
  // How many inputs a call must have at least.
  int min_inputs() const {
    int n = 0;
    for (const ArgDef& a : inputs_) n += a.optional ? 0 : 1;
    return n;
  }
  bool variadic() const { return !inputs_.empty() && inputs_.back().variadic; }

  int num_outputs(const Attrs* attrs) const {
    return num_outputs_ ? num_outputs_(*this, attrs)
                        : static_cast<int>(outputs_.size());
  }
  // The attribute, or its default. Throws errors::InvalidArgument when it is
  // unknown, required and missing, or of another type.
  template <class T>
  const T& attr(const Attrs* attrs, std::string_view name) const {
    const AttrValue& v = attr_value(attrs, name);
    if (const T* t = std::get_if<T>(&v)) return *t;
    bad_attr_type(name);
  }

  InferFn infer() const { return infer_; }
  GradientFn gradient() const { return gradient_; }
  DecomposeFn decompose() const { return decompose_; }
  SplitFn split() const { return split_; }
  Cost cost(const InferContext& c) const;

  // Output i has the broadcast shape of all inputs; the kernel looks at one
  // element of each at a time.
  bool elementwise() const { return elementwise_; }
  bool commutative() const { return commutative_; }
  // Exists only inside graphs; no device computes it.
  bool graph_only() const { return kind_ >= OpKind::kArgument; }
  // The input that updates_with() named; -1: it has not been called.
  int update_value() const { return update_value_; }
  // An optimizer's: update() has been called.
  bool update() const { return update_; }
  // Must run even when nobody uses a result, and never twice.
  bool stateful() const { return stateful_; }
  // Reads (seed, op id, step, index); never folded or merged.
  bool random() const { return random_; }
  bool differentiable() const { return gradient_ || decompose_; }
  bool has_variables() const { return has_variables_; }
  // Only reads shapes; follows its input's device.
  bool metadata() const { return metadata_; }
  // Has the attributes of another op besides those declared.
  bool any_attrs() const { return any_attrs_; }
  const std::string& doc() const { return doc_; }

 private:
  friend class OpBuilder;
  friend class OpRegistry;
  bool flag(uint64_t bits, int i) const {
    const int last = static_cast<int>(outputs_.size()) - 1;
    return bits >> (i < last ? i : last < 0 ? 0 : last) & 1;
  }
  const AttrValue& attr_value(const Attrs* attrs, std::string_view name) const;
  [[noreturn]] void bad_attr_type(std::string_view name) const;

  std::string name_;
  std::string doc_;
  std::vector<ArgDef> inputs_;
  std::vector<std::string> outputs_;
  std::vector<AttrDef> attrs_;
  InferFn infer_ = nullptr;
  GradientFn gradient_ = nullptr;
  DecomposeFn decompose_ = nullptr;
  CostFn cost_ = nullptr;
  SplitFn split_ = nullptr;
  NumOutputsFn num_outputs_ = nullptr;
  uint64_t ref_outputs_ = 0, host_outputs_ = 0;  // one bit each, at most 64
  int update_value_ = -1;
  uint16_t id_ = 0;
  OpKind kind_ = OpKind::kCompute;
  bool elementwise_ = false;
  bool commutative_ = false;
  bool stateful_ = false;
  bool random_ = false;
  bool metadata_ = false;
  bool not_differentiable_ = false;
  bool has_variables_ = false;
  bool update_ = false;
  bool any_attrs_ = false;
};

template <class T>
const T& InferContext::attr(std::string_view name) const {
  return op_.attr<T>(attrs_, name);
}

template <class T>
T GradCall::attr(std::string_view name) const {
  return op_.attr<T>(attrs_, name);
}

}  // namespace berth

#endif  // BERTH_OP_OP_DEF_H_
