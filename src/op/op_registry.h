// OpRegistry: the catalogue of ops, built once, open to users' ops.
//
// Registration is explicit: the first use calls register_all_ops() (ops/).
// Registering throws errors::InvalidArgument for a repeated name, an op
// without shape rule, or one that has no gradient, no decomposition and does
// not say not_differentiable(). Thread-safe; an OpDef lives for ever.

#ifndef BERTH_OP_OP_REGISTRY_H_
#define BERTH_OP_OP_REGISTRY_H_

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "op/op_def.h"

namespace berth {

inline constexpr int kMaxOps = 1024;

// The id of an op that detach() made: no kernel table has it.
inline constexpr uint16_t kDetachedOp = 0xffff;

// Fills in one OpDef; the op is registered when the builder ends, unless an
// exception ends it. Without a
// registry nothing is registered: detach() returns the op.
class OpBuilder {
 public:
  explicit OpBuilder(class OpRegistry* registry, std::string name);
  ~OpBuilder() noexcept(false);
  OpBuilder(const OpBuilder&) = delete;
  OpBuilder& operator=(const OpBuilder&) = delete;

  OpBuilder& input(std::string name, DTypeSet types = kEveryType);
  // An input whose dtype need not equal that of the other inputs.
  OpBuilder& free_input(std::string name, DTypeSet types = kEveryType);
  // An input that a call may leave out; only optional ones may follow.
  OpBuilder& optional_input(std::string name, DTypeSet types = kEveryType);
  OpBuilder& variadic_input(std::string name, DTypeSet types = kEveryType);
  // Any number of inputs of any dtypes after the others, also none.
  OpBuilder& any_inputs(std::string name, DTypeSet types);
  // At least one input, with any mix of dtypes.
  OpBuilder& free_variadic_input(std::string name, DTypeSet types = kEveryType);
  OpBuilder& reads_variable(std::string name);
  OpBuilder& writes_variable(std::string name,
                             Access access = Access::kWritesVariable);
  // The last argument: variables that are written, and values among them.
  OpBuilder& writes_variables(std::string name);
  // Flags of the input added last.
  OpBuilder& ref_input();
  OpBuilder& host_input();
  OpBuilder& output(std::string name);
  // Flags of the output added last, one of the first 64.
  OpBuilder& ref_output();
  OpBuilder& host_output();
  OpBuilder& num_outputs(NumOutputsFn fn);
  OpBuilder& attr(std::string name, AttrValue default_value);
  // An attribute without default; `type` gives its type.
  OpBuilder& required_attr(std::string name, AttrValue type);
  OpBuilder& any_attrs();  // those of another op, besides these
  OpBuilder& infer(InferFn fn);
  OpBuilder& gradient(GradientFn fn);
  OpBuilder& decompose(DecomposeFn fn);
  OpBuilder& cost(CostFn fn);
  OpBuilder& split(SplitFn fn);
  OpBuilder& kind(OpKind kind);
  OpBuilder& elementwise();
  // Promises that each element of the variables becomes what that element of
  // them, the same element of input `value` (an input above) and scalars give.
  // Devices of one memory then share the work by ranges of elements. The op
  // gets the attribute "shared": the kernel is told there that other devices
  // read what it writes next.
  OpBuilder& updates_with(std::string_view value);
  // Declares an optimizer's update with the gradient `gradient`; small ones
  // are merged where they have a direct kernel, and an op without rules of its
  // own gets infer_update, split_update and cost_update.
  OpBuilder& update(std::string_view gradient);
  OpBuilder& commutative();
  OpBuilder& stateful();
  OpBuilder& random();
  OpBuilder& metadata();
  OpBuilder& not_differentiable();
  OpBuilder& doc(std::string text);

  // Returns the op unregistered: only its holder knows it (ops that the text
  // of a graph declares). It needs no rules.
  std::shared_ptr<const OpDef> detach();

 private:
  OpRegistry* registry_;
  std::unique_ptr<OpDef> def_;
  int exceptions_ = std::uncaught_exceptions();
};

class OpRegistry {
 public:
  static OpRegistry& get();

  OpBuilder op(std::string name) { return OpBuilder(this, std::move(name)); }
  // Null for an unknown name.
  const OpDef* find(std::string_view name) const;
  // Throws errors::NotFound with the nearest names.
  const OpDef& lookup(std::string_view name) const;
  ~OpRegistry();  // never runs: the registry lives for ever
  // In order of registration; ids are positions.
  std::vector<const OpDef*> all() const;

 private:
  friend class OpBuilder;
  OpRegistry();
  void add(std::unique_ptr<OpDef> def);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Registers the catalogue; defined in ops/.
void register_all_ops(OpRegistry& registry);

// Returns the op of a name known to exist, for function-local statics.
inline const OpDef& op_named(std::string_view name) {
  return OpRegistry::get().lookup(name);
}

}  // namespace berth

#endif  // BERTH_OP_OP_REGISTRY_H_
