#include "graph/parse_decl.h"

#include <fmt/format.h>

#include <limits>

#include "berth/errors.h"
#include "graph/text_value.h"

namespace berth {

namespace {

// A function that a text names but does not contain.
class DeclaredFunction : public Callable {
 public:
  DeclaredFunction(std::string name, std::vector<TensorSpec> inputs,
                   std::vector<TensorSpec> outputs)
      : name_(std::move(name)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  const std::string& name() const override { return name_; }
  const std::vector<TensorSpec>& input_specs() const override {
    return inputs_;
  }
  const std::vector<TensorSpec>& output_specs() const override {
    return outputs_;
  }
  void call(std::span<const Tensor* const>, std::span<Tensor>) override {
    refuse();
  }
  Tensors gradient(std::span<const Tensor>, std::span<const Tensor>,
                   const Tensors&, const std::vector<bool>&) override {
    refuse();
  }

 private:
  [[noreturn]] void refuse() const {
    throw errors::FailedPrecondition(fmt::format(
        "function '{}' is only declared by the text of its graph; expected a "
        "traced function: trace it in this process",
        name_));
  }

  std::string name_;
  std::vector<TensorSpec> inputs_, outputs_;
};

DTypeSet parse_types(TextLine& line) {
  if (line.take_word("any")) return kAnyType;
  DTypeSet types = 0;
  do {
    types |= dtype_bit(parse_dtype(line));
  } while (line.take("|"));
  return types;
}

// Returns true when the input may repeat.
bool parse_input(TextLine& line, OpBuilder& op) {
  std::string name = line.name("the name of an input");
  line.expect(":");
  const DTypeSet types = parse_types(line);
  if (types == kResourceType) {
    if (line.take_word("read")) {
      op.reads_variable(std::move(name));
      return false;
    }
    if (line.take_word("write")) {
      op.writes_variable(std::move(name));
      return false;
    }
    if (line.take_word("overwrite")) {
      op.writes_variable(std::move(name), Access::kOverwritesVariable);
      return false;
    }
  }
  if (line.take_word("repeated")) {
    op.variadic_input(std::move(name), types);
    return true;
  }
  op.free_input(std::move(name), types);
  return false;
}

void parse_traits(TextLine& line, OpBuilder& op) {
  while (!line.at_end()) {
    if (line.take_word("stateful")) {
      op.stateful();
    } else if (line.take_word("random")) {
      op.random();
    } else if (line.take_word("metadata")) {
      op.metadata();
    } else if (line.take_word("commutative")) {
      op.commutative();
    } else {
      line.fail_here("stateful, random, metadata, commutative or the end");
    }
  }
}

void parse_signature(TextLine& line, OpBuilder& op) {
  line.expect("(");
  bool last = false;
  for (bool first = true; !line.take(")"); first = false) {
    if (!first) line.expect(",");
    if (last) line.fail("an input behind a repeated one, expected none");
    last = parse_input(line, op);
  }
  line.expect("->");
  line.expect("(");
  last = false;
  for (bool first = true; !line.take(")"); first = false) {
    if (!first) line.expect(",");
    if (last) line.fail("an output behind a repeated one, expected none");
    std::string name = line.name("the name of an output");
    last = name.ends_with(kRepeated);
    op.output(std::move(name));
  }
  parse_traits(line, op);
}

std::vector<TensorSpec> parse_specs(TextLine& line) {
  std::vector<TensorSpec> specs;
  line.expect("(");
  while (!line.take(")")) {
    if (!specs.empty()) line.expect(",");
    const OutSpec spec = parse_spec(line);
    specs.push_back({.shape = spec.shape, .dtype = spec.dtype});
  }
  return specs;
}

}  // namespace

std::shared_ptr<const OpDef> parse_op(TextLine& line) {
  const std::string name = line.name("the name of an op");
  if (name.empty()) line.fail("an op without name, expected one");
  if (OpRegistry::get().find(name)) {
    line.fail(
        fmt::format("op '{}' is in the catalogue, expected a name that "
                    "is not",
                    name));
  }
  OpBuilder op(nullptr, name);
  parse_signature(line, op);
  return op.detach();
}

KernelDecl parse_kernel(TextLine& line) {
  KernelDecl kernel;
  kernel.op = line.name("the name of an op");
  if (!line.take_word("on")) line.fail_here("'on' and device types");
  do {
    kernel.device_types.push_back(line.name("a device type"));
  } while (line.take(","));
  if (line.take_word("priority")) {
    const int64_t priority = line.integer("a priority");
    constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
    if (priority < -kLimit || priority > kLimit) {
      line.fail(
          fmt::format("priority {}, expected one that fits 32 bits", priority));
    }
    kernel.priority = static_cast<int32_t>(priority);
  }
  if (line.take_word("types")) kernel.dtypes = parse_types(line);
  return kernel;
}

DeviceDecl parse_device(TextLine& line) {
  return {.name = line.name("the name of a device")};
}

std::shared_ptr<Callable> parse_function(TextLine& line) {
  std::string name = line.name("the name of a function");
  if (name.empty()) line.fail("a function without name, expected one");
  auto inputs = parse_specs(line);
  line.expect("->");
  auto outputs = parse_specs(line);
  return std::make_shared<DeclaredFunction>(std::move(name), std::move(inputs),
                                            std::move(outputs));
}

}  // namespace berth
