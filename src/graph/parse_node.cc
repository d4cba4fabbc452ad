#include "graph/parse_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/intern.h"
#include "berth/errors.h"
#include "graph/node_part.h"
#include "graph/text_value.h"

namespace berth {

namespace {

void read_source(TextLine& line, NodeSource& source) {
  source.name = line.name("the name of a source");
  if (!line.take("(")) return;
  source.site.file = intern(line.name("a file name"));
  line.expect(":");
  const int64_t number = line.integer("a line number");
  if (number < 0 || number > std::numeric_limits<int>::max()) {
    line.fail(fmt::format("source line {}, expected one in 32 bits", number));
  }
  source.site.line = static_cast<int>(number);
  line.expect(")");
}

int32_t read_replica(TextLine& line) {
  const int64_t replica = line.integer("the number of a replica");
  if (replica >= 0 && replica <= std::numeric_limits<int16_t>::max()) {
    return static_cast<int32_t>(replica);
  }
  line.fail(fmt::format("replica {}, expected one in [0, {}]", replica,
                        std::numeric_limits<int16_t>::max()));
}

std::string spec_text(const OutSpec& spec) {
  std::string s;
  append_spec(s, spec);
  return s;
}

}  // namespace

int32_t GraphReader::find_node(TextLine& line, const std::string& name) const {
  const auto it = nodes_.find(name);
  if (it != nodes_.end()) return it->second;
  line.fail(fmt::format(
      "node '{}' is not there, expected the name of a node above", name));
}

ValueRef GraphReader::read_value(TextLine& line) const {
  const int32_t node = find_node(line, line.name("the name of a node"));
  line.expect(":");
  const int64_t output = line.integer("the number of an output");
  const auto n = static_cast<int64_t>(graph[node].outputs.size());
  if (output >= 0 && output < n) return {node, static_cast<int32_t>(output)};
  line.fail(fmt::format("output {} of '{}', expected {}", output,
                        graph[node].name,
                        n == 0 ? "none: it has no outputs"
                               : fmt::format("0 to {}: it has {}", n - 1, n)));
}

void GraphReader::read_return(TextLine& line) {
  if (!graph.outputs.empty()) {
    line.fail("'return' again, expected one such line");
  }
  do {
    graph.outputs.push_back(read_value(line));
  } while (line.take(","));
}

void GraphReader::read_node(TextLine& line) {
  Node node;
  name_column_ = line.column();
  node.name = line.name("the name of a node");
  if (node.name.empty()) line.fail("a node without name, expected one");
  if (nodes_.contains(node.name)) {
    line.fail(
        fmt::format("node '{}' again, expected distinct names", node.name));
  }
  line.expect("=");
  op_column_ = line.column();
  node.op = &names_.op(line, line.name("the name of an op"));
  read_inputs(line, node);
  Callees callees;
  if (line.take("{")) parse_attrs(line, names_, node, callees);
  read_outputs(line, node);
  check(line, node);
  NodeCost cost;
  read_clauses(line, node, cost);
  add(line, std::move(node), std::move(cost), callees);
}

void GraphReader::add(TextLine& line, Node node, NodeCost cost,
                      const Callees& callees) {
  const int32_t at = graph.size();
  nested_nodes += 1 + callees.nodes;
  depth = std::max(depth, callees.depth + 1);
  if (nested_nodes > kMaxNestedNodes || depth > kMaxNesting) {
    line.fail_at(
        name_column_,
        fmt::format("{} nodes with those of callees and callees {} deep, "
                    "expected at most {} and {}",
                    nested_nodes, depth, kMaxNestedNodes, kMaxNesting));
  }
  if (node.op->kind() == OpKind::kArgument) {
    args_.push_back({at, line.line_number(), name_column_, {}});
  }
  nodes_.emplace(node.name, at);
  graph.add(std::move(node));
  if (cost.empty() && costs.empty()) return;
  costs.resize(static_cast<size_t>(at) + 1);
  costs.back() = std::move(cost);
}

void GraphReader::read_inputs(TextLine& line, Node& node) {
  input_columns_.clear();
  line.expect("(");
  for (bool first = true; !line.take(")"); first = false) {
    if (!first) line.expect(",");
    const int64_t column = line.column();
    if (line.take("^")) {
      const std::string name = line.name("the name of a node");
      node.controls.push_back(find_node(line, name));
    } else if (node.controls.empty()) {
      node.inputs.push_back(read_value(line));
      input_columns_.push_back(column);
    } else {
      line.fail_here("'^': controls stand behind the inputs");
    }
  }
  std::sort(node.controls.begin(), node.controls.end());
  node.controls.erase(std::unique(node.controls.begin(), node.controls.end()),
                      node.controls.end());
}

void GraphReader::read_outputs(TextLine& line, Node& node) {
  output_columns_.clear();
  if (!line.take("->")) return;
  do {
    output_columns_.push_back(line.column());
    node.outputs.push_back(parse_spec(line));
  } while (line.take(","));
}

// A node of the catalogue must agree with its shape rule, one of a declared
// op with its declaration, a call with its function.
void GraphReader::check(TextLine& line, const Node& node) const {
  const OpDef& op = *node.op;
  if (op.infer() == nullptr) {
    check_declared(line, node);
    return;
  }
  check_required(line, op_column_, node);
  std::vector<SpecView> in;
  for (const ValueRef v : node.inputs) in.push_back(graph.spec(v).view());
  std::vector<OutSpec> out(node.outputs.size());
  int n = 0;
  std::string wrong;
  try {
    n = op.num_outputs(node.attrs.get());
    if (static_cast<size_t>(n) == out.size()) {
      infer_outputs(op, node.attrs.get(), in, out);
    }
  } catch (const errors::Error& error) {
    wrong = error.what();
  }
  if (!wrong.empty()) {
    if (wrong.find("xpected") == std::string::npos) wrong += "; expected else";
    line.fail_at(op_column_, wrong);
  }
  if (static_cast<size_t>(n) != out.size()) {
    line.fail_at(
        output_columns_.empty() ? op_column_ : output_columns_.front(),
        fmt::format("{} outputs, expected {} of {}", out.size(), n, op.name()));
  }
  for (size_t i = 0; i < out.size(); ++i) check_output(line, node, i, out[i]);
  if (op.kind() == OpKind::kCall) check_call(line, node);
}

void GraphReader::check_output(TextLine& line, const Node& node, size_t i,
                               const OutSpec& rule) const {
  const OutSpec& said = node.outputs[i];
  // Arguments and results that are handles do not know their variable.
  const bool same_variable =
      said.variable == rule.variable ||
      (rule.dtype == resource && rule.variable == DType::kInvalid);
  if (said.dtype == rule.dtype && same_variable &&
      said.shape.compatible_with(rule.shape) && shape_fits(rule.shape)) {
    return;
  }
  line.fail_at(
      output_columns_[i],
      fmt::format("output {} of '{}' is {}, expected {} of {}", i, node.name,
                  spec_text(said), spec_text(rule), node.op->name()));
}

void GraphReader::check_declared(TextLine& line, const Node& node) const {
  const OpDef& op = *node.op;
  const size_t least = static_cast<size_t>(op.min_inputs());
  const size_t most = op.inputs().size(), have = node.inputs.size();
  if (have < least || (have > most && !op.variadic())) {
    line.fail_at(op_column_,
                 fmt::format("{} inputs, expected {}{} of {}", have, least,
                             op.variadic()  ? " or more"
                             : least < most ? fmt::format(" to {}", most)
                                            : "",
                             op.name()));
  }
  for (size_t i = 0; i < have; ++i) {
    const DType d = graph.spec(node.inputs[i]).dtype;
    const ArgDef& arg = op.input(static_cast<int>(i));
    if (arg.types & dtype_bit(d)) continue;
    line.fail_at(
        input_columns_[i],
        fmt::format("input {} is {}, expected one of {} for '{}' of "
                    "{}",
                    i, name_of(d), dtype_list(arg.types), arg.name, op.name()));
  }
  const auto& names = op.outputs();
  const bool repeated = !names.empty() && names.back().ends_with(kRepeated);
  const size_t fixed = names.size() - (repeated ? 1 : 0);
  const size_t out = node.outputs.size();
  if (out < fixed || (out > fixed && !repeated)) {
    line.fail_at(out > 0 ? output_columns_.front() : op_column_,
                 fmt::format("{} outputs, expected {}{} of {}", out, fixed,
                             repeated ? " or more" : "", op.name()));
  }
}

// The function must take what the node gives it.
void GraphReader::check_call(TextLine& line, const Node& node) const {
  const auto& f =
      *node.op->attr<std::shared_ptr<Callable>>(node.attrs.get(), "f");
  const std::vector<TensorSpec>& specs = f.input_specs();
  if (specs.size() != node.inputs.size()) {
    line.fail_at(op_column_,
                 fmt::format("{} inputs, expected {} of function '{}'",
                             node.inputs.size(), specs.size(), f.name()));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    const OutSpec& given = graph.spec(node.inputs[i]);
    if (given.dtype == specs[i].dtype &&
        given.shape.compatible_with(specs[i].shape)) {
      continue;
    }
    line.fail_at(
        input_columns_[i],
        fmt::format("input {} is {}, expected {} of function '{}'", i,
                    spec_text(given),
                    spec_text({specs[i].dtype, specs[i].shape}), f.name()));
  }
}

// Words end at a ':', which every device name has after its type.
static std::string read_device_name(TextLine& line) {
  const int64_t column = line.column();
  std::string name = line.name("a device name");
  if (line.take(":")) {
    line.fail_at(column, fmt::format("device name {}:... without quotes, "
                                     "expected one like \"/device:GPU:0\"",
                                     name));
  }
  return name;
}

void GraphReader::read_clauses(TextLine& line, Node& node, NodeCost& cost) {
  bool follows = false;
  while (!line.at_end()) {
    if (node.requested.empty() && line.take_word("on")) {
      node.requested = read_device_name(line);
    } else if (node.assigned.empty() && line.take_word("at")) {
      node.assigned = read_device_name(line);
    } else if (node.colocated.empty() && line.take_word("with")) {
      do {
        node.colocated.push_back(line.name("the name of a node or group"));
      } while (line.take(","));
    } else if (!follows && line.take_word("follows")) {
      follows = true;
      const int64_t column = line.column();
      followers_.push_back({graph.size(), line.line_number(), column,
                            line.name("the name of a node")});
    } else if (node.replica < 0 && line.take_word("replica")) {
      node.replica = read_replica(line);
    } else if (!node.collective && line.take_word("collective")) {
      node.collective = true;
    } else if (!node.part && line.take_word("part")) {
      node.part = std::make_shared<const NodePart>(parse_part(line));
    } else if (node.sources.empty() && line.take_word("from")) {
      do {
        read_source(line, node.sources.emplace_back());
      } while (line.take(","));
    } else if (cost.time_us.empty() && line.take_word("time")) {
      do {
        std::string type = line.name("a device type or class");
        cost.time_us.emplace_back(
            std::move(type), parse_amount(line, "time", Amount::kInfinite));
      } while (line.take(","));
    } else if (cost.bytes.empty() && line.take_word("bytes")) {
      do {
        cost.bytes.push_back(parse_bytes(line));
      } while (line.take(","));
    } else {
      line.fail_here(
          "'->', on, at, with, follows, replica, collective, part, from, "
          "time, bytes (each once) or the end of the line");
    }
  }
}

void GraphReader::finish() {
  for (const Place& f : followers_) {
    const TextLine line("", f.line);
    const auto it = nodes_.find(f.name);
    if (it == nodes_.end()) {
      line.fail_at(f.column,
                   fmt::format("node '{}' is not there, expected the name of "
                               "a node",
                               f.name));
    }
    if (it->second == f.node) {
      line.fail_at(f.column, fmt::format("node '{}' follows itself, expected "
                                         "another",
                                         f.name));
    }
    graph[f.node].follows = it->second;
  }
  if (!costs.empty()) costs.resize(graph.nodes.size());
  collect_args();
}

void GraphReader::collect_args() {
  const auto index = [&](const Place& a) {
    const Node& node = graph[a.node];
    return node.op->attr<int64_t>(node.attrs.get(), "index");
  };
  std::stable_sort(
      args_.begin(), args_.end(),
      [&](const Place& a, const Place& b) { return index(a) < index(b); });
  for (size_t i = 0; i < args_.size(); ++i) {
    if (index(args_[i]) != static_cast<int64_t>(i)) {
      TextLine("", args_[i].line)
          .fail_at(args_[i].column,
                   fmt::format("the _Arg nodes have index {} in place {}, "
                               "expected 0, 1, ... once each",
                               index(args_[i]), i));
    }
    graph.args.push_back(args_[i].node);
  }
}

}  // namespace berth
