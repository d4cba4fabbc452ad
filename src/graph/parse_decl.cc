#include "graph/parse_decl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "berth/errors.h"
#include "device/composite.h"
#include "device/device_name.h"
#include "device/parse_among.h"
#include "graph/text_value.h"

namespace berth {

const OpDef& TextNames::op(TextLine& line, const std::string& name) const {
  if (const auto it = ops_.find(name); it != ops_.end()) return *it->second;
  if (const OpDef* op = OpRegistry::get().find(name)) return *op;
  line.fail(
      fmt::format("op '{}' is unknown, expected an op of the catalogue "
                  "or a line 'op {} (...) -> (...)' above",
                  name, name));
}

const TextNames::Function& TextNames::function(TextLine& line,
                                               const std::string& name) const {
  const auto it = functions_.find(name);
  if (it != functions_.end()) return it->second;
  if (name == open_) {
    line.fail(
        fmt::format("function '{}' calls itself, expected one that is "
                    "complete above: a graph has no recursion",
                    name));
  }
  line.fail(
      fmt::format("function '{}' is not declared, expected a line "
                  "'function {} (...) -> (...)' above",
                  name, name));
}

void TextNames::add_op(TextLine& line, int64_t column, const OpDef& op) {
  if (ops_.emplace(op.name(), &op).second) return;
  line.fail_at(column, fmt::format("op '{}' again, expected one declaration",
                                   op.name()));
}

void TextNames::check_new_function(TextLine& line,
                                   const std::string& name) const {
  if (!functions_.contains(name)) return;
  line.fail(fmt::format("function '{}' again, expected one declaration", name));
}

void TextNames::add_function(Function f) {
  std::string name = f.callable->name();
  functions_.emplace(std::move(name), std::move(f));
}

double parse_amount(TextLine& line, const char* what, Amount kind) {
  const double value = parse_double(line);
  const bool fits = kind == Amount::kPositive ? value > 0 : value >= 0;
  if (fits && (kind == Amount::kInfinite || std::isfinite(value))) return value;
  line.fail(
      fmt::format("{} {}, expected {}{}", what, value,
                  kind == Amount::kInfinite ? "a number " : "a finite number ",
                  kind == Amount::kPositive ? "above 0" : "of 0 or more"));
}

int64_t parse_bytes(TextLine& line) {
  const int64_t bytes = line.integer("a number of bytes");
  if (bytes >= 0) return bytes;
  line.fail(fmt::format("{} bytes, expected 0 or more", bytes));
}

namespace {

constexpr size_t kMaxInputs = 1000, kMaxOutputs = 64;

DTypeSet parse_types(TextLine& line) {
  if (line.take_word("any")) return kAnyType;
  DTypeSet types = 0;
  do {
    types |= dtype_bit(parse_dtype(line));
  } while (line.take("|"));
  return types;
}

// Reads "read", "write" or "overwrite"; false: none of them stands here.
bool parse_access(TextLine& line, const std::string& name, OpBuilder& op) {
  if (line.take_word("read")) {
    op.reads_variable(name);
  } else if (line.take_word("write")) {
    op.writes_variable(name);
  } else if (line.take_word("overwrite")) {
    op.writes_variable(name, Access::kOverwritesVariable);
  } else {
    return false;
  }
  return true;
}

struct InputKind {
  bool repeated = false, optional = false;
};

InputKind parse_input(TextLine& line, OpBuilder& op) {
  const std::string name = line.name("the name of an input");
  line.expect(":");
  const DTypeSet types = parse_types(line);
  InputKind kind;
  if (types != kResourceType || !parse_access(line, name, op)) {
    kind.repeated = line.take_word("repeated");
    kind.optional = line.take_word("optional");
    if (kind.repeated && kind.optional) {
      op.any_inputs(name, types);
    } else if (kind.repeated) {
      op.variadic_input(name, types);
    } else if (kind.optional) {
      op.optional_input(name, types);
    } else {
      op.free_input(name, types);
    }
  }
  if (line.take_word("ref")) op.ref_input();
  if (line.take_word("host")) op.host_input();
  return kind;
}

void parse_inputs(TextLine& line, OpBuilder& op) {
  InputKind last;
  size_t n = 0;
  line.expect("(");
  while (!line.take(")")) {
    if (n++ > 0) line.expect(",");
    const int64_t column = line.column();
    if (last.repeated) {
      line.fail_at(column, "an input behind a repeated one, expected none");
    }
    const bool optional = last.optional;
    last = parse_input(line, op);
    if (optional && !last.optional) {
      line.fail_at(column,
                   "an input behind an optional one, expected it to be "
                   "optional too");
    }
    if (n > kMaxInputs) {
      line.fail_at(column, fmt::format("more than {} inputs, expected a "
                                       "'repeated' one",
                                       kMaxInputs));
    }
  }
}

void parse_outputs(TextLine& line, OpBuilder& op) {
  bool repeated = false;
  size_t n = 0;
  line.expect("(");
  while (!line.take(")")) {
    if (n++ > 0) line.expect(",");
    std::string name = line.name("the name of an output");
    if (repeated) line.fail("an output behind a repeated one, expected none");
    if (n > kMaxOutputs) {
      line.fail(
          fmt::format("more than {} outputs, expected one whose name "
                      "ends in '...'",
                      kMaxOutputs));
    }
    repeated = name.ends_with(kRepeated);
    op.output(std::move(name));
    if (line.take_word("ref")) op.ref_output();
    if (line.take_word("host")) op.host_output();
  }
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

std::vector<OutSpec> parse_specs(TextLine& line) {
  std::vector<OutSpec> specs;
  line.expect("(");
  while (!line.take(")")) {
    if (!specs.empty()) line.expect(",");
    specs.push_back(parse_spec(line));
  }
  return specs;
}

int32_t parse_int32(TextLine& line, const char* what, int64_t least) {
  const int64_t value = line.integer(what);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (value >= least && value <= kMost) return static_cast<int32_t>(value);
  line.fail(
      fmt::format("{}, expected {} from {} to {}", value, what, least, kMost));
}

// Reads a list of operands of `op`: "(a, y)".
std::vector<std::string> parse_operands(TextLine& line, const OpDef& op) {
  std::vector<std::string> names;
  line.expect("(");
  while (!line.take(")")) {
    if (!names.empty()) line.expect(",");
    std::string name = line.name("the name of an input or output");
    const auto in =
        std::find_if(op.inputs().begin(), op.inputs().end(),
                     [&](const ArgDef& a) { return a.name == name; });
    if (in == op.inputs().end() &&
        std::find(op.outputs().begin(), op.outputs().end(), name) ==
            op.outputs().end()) {
      line.fail(
          fmt::format("{} has no operand '{}', expected the name of an "
                      "input or output of it",
                      op.name(), name));
    }
    if (names.size() == kMaxInputs) {
      line.fail(
          fmt::format("more than {} operands, expected each once", kMaxInputs));
    }
    names.push_back(std::move(name));
  }
  if (names.empty()) line.fail("no operands, expected at least one");
  return names;
}

DeviceName parsed_name(TextLine& line, const std::string& name) {
  try {
    return parse_among(name, "those of device lines and of --devices");
  } catch (const errors::InvalidArgument& e) {
    line.fail(e.what());
  }
}

void check_device_name(TextLine& line, const std::string& name) {
  if (parsed_name(line, name).type) return;
  line.fail(
      fmt::format("device '{}' has no type, expected for example "
                  "\"/job:worker/replica:0/task:0/device:GPU:0\"",
                  name));
}

std::string device_name(TextLine& line) {
  std::string name = line.name("the name of a device");
  check_device_name(line, name);
  return name;
}

// Reads the devices that a composite one stands for.
std::vector<std::string> parse_parts(TextLine& line, const std::string& name) {
  const bool composite = DeviceName::parse(name).type == kCompositeType;
  std::vector<std::string> parts;
  if (line.take_word("of")) {
    if (!composite) {
      line.fail(fmt::format("device '{}' of others, expected type {}", name,
                            kCompositeType));
    }
    do {
      parts.push_back(device_name(line));
      const auto before = parts.end() - 1;
      if (std::find(parts.begin(), before, parts.back()) != before) {
        line.fail(fmt::format("device '{}' twice in '{}', expected each once",
                              parts.back(), name));
      }
    } while (line.take(","));
  }
  if (composite && parts.empty()) {
    line.fail_here("'of' and the devices that it stands for");
  }
  return parts;
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
  parse_inputs(line, op);
  line.expect("->");
  parse_outputs(line, op);
  parse_traits(line, op);
  return op.detach();
}

KernelDecl parse_kernel(TextLine& line, const TextNames& names) {
  KernelDecl kernel;
  kernel.op = line.name("the name of an op");
  const OpDef& op = names.op(line, kernel.op);
  if (!line.take_word("on")) line.fail_here("'on' and device types");
  do {
    std::string on = line.name("a device type");
    if (on.find('/') != on.npos) check_device_name(line, on);
    kernel.device_types.push_back(std::move(on));
  } while (line.take(","));
  if (line.take_word("priority")) {
    kernel.priority =
        parse_int32(line, "a priority", -std::numeric_limits<int32_t>::max());
  }
  if (line.take_word("types")) kernel.dtypes = parse_types(line);
  if (line.take_word("host")) kernel.host = parse_operands(line, op);
  if (!line.at_end()) {
    line.fail_here("priority, types, host (in this order) or the end");
  }
  return kernel;
}

ClassDecl parse_class(TextLine& line) {
  ClassDecl c;
  c.name = line.name("the name of a class of devices");
  if (!line.take_word("on")) line.fail_here("'on' and a device type");
  c.type = line.name("a device type");
  if (line.take_word("flops")) {
    c.flops_per_us = parse_amount(line, "flops", Amount::kPositive);
  }
  if (line.take_word("bandwidth")) {
    c.bytes_per_us = parse_amount(line, "bandwidth", Amount::kPositive);
  }
  if (line.take_word("launch")) {
    c.launch_us = parse_amount(line, "launch", Amount::kFinite);
  }
  if (!line.at_end()) {
    line.fail_here("flops, bandwidth, launch (in this order) or the end");
  }
  return c;
}

DeviceDecl parse_device(TextLine& line) {
  DeviceDecl device;
  device.name = device_name(line);
  device.parts = parse_parts(line, device.name);
  if (line.take_word("memory")) device.memory_limit = parse_bytes(line);
  if (line.take_word("class")) {
    device.device_class = line.name("the name of a class of devices");
  }
  if (line.take_word("copies")) {
    constexpr const char* kRules = "overlap, receiving, both or free";
    device.copies = line.word(kRules);
    if (device.copies != "overlap" && device.copies != "receiving" &&
        device.copies != "both" && device.copies != "free") {
      line.fail(fmt::format("copies '{}', expected {}", device.copies, kRules));
    }
  }
  if (!line.at_end()) {
    line.fail_here("memory, class, copies (in this order) or the end");
  }
  return device;
}

std::string parse_local(TextLine& line) {
  std::string name = line.name("the name of a task");
  const DeviceName task = parsed_name(line, name);
  if (!task.job || !task.task || task.type || task.id) {
    line.fail(
        fmt::format("'{}' is no task, expected for example "
                    "\"/job:worker/task:1\"",
                    name));
  }
  return name;
}

std::vector<std::string> parse_order(TextLine& line) {
  std::vector<std::string> types;
  do {
    types.push_back(line.name("a device type"));
    const auto before = types.end() - 1;
    if (std::find(types.begin(), before, types.back()) != before) {
      line.fail(fmt::format("device type '{}' again, expected each once",
                            types.back()));
    }
  } while (line.take(","));
  return types;
}

bool is_of_type(const std::string& device, const std::string& type) {
  const std::string have = *DeviceName::parse(device).type;
  return std::equal(
      have.begin(), have.end(), type.begin(), type.end(), [](char a, char b) {
        return a == b ||
               (b >= 'a' && b <= 'z' && a == static_cast<char>(b - 'a' + 'A'));
      });
}

LinkDecl parse_link(TextLine& line) {
  LinkDecl link;
  link.from = device_name(line);
  line.expect("->");
  link.to = device_name(line);
  if (!line.take_word("latency")) line.fail_here("'latency' in microseconds");
  link.latency_us = parse_amount(line, "latency", Amount::kFinite);
  if (!line.take_word("bandwidth")) {
    line.fail_here("'bandwidth' in bytes per microsecond");
  }
  link.bytes_per_us = parse_amount(line, "bandwidth", Amount::kPositive);
  if (line.take_word("shared")) {
    link.shared = parse_int32(line, "the number of a shared link", 0);
  }
  if (!line.at_end()) line.fail_here("shared or the end");
  return link;
}

std::shared_ptr<DeclaredFunction> parse_function(TextLine& line,
                                                 const TextNames& names) {
  std::string name = line.name("the name of a function");
  if (name.empty()) line.fail("a function without name, expected one");
  names.check_new_function(line, name);
  Signature s;
  s.inputs = parse_specs(line);
  line.expect("->");
  s.outputs = parse_specs(line);
  return std::make_shared<DeclaredFunction>(std::move(name), std::move(s));
}

}  // namespace berth
