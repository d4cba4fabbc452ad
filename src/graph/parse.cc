// Reads graph texts: docs/graph-format.md.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "berth/errors.h"
#include "graph/body.h"
#include "graph/graph_text.h"
#include "graph/parse_decl.h"
#include "graph/text_line.h"
#include "graph/text_value.h"

namespace berth {

namespace {

// Site::file lives for ever; file names of texts are kept once each.
const char* intern_file(std::string file) {
  static std::mutex& mutex = *std::make_unique<std::mutex>().release();
  static auto& files =
      *std::make_unique<std::unordered_set<std::string>>().release();
  std::lock_guard lock(mutex);
  return files.insert(std::move(file)).first->c_str();
}

class Parser {
 public:
  GraphText run(std::string_view text) {
    bool version = false;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      TextLine line(text.substr(0, end), ++number_);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.at_end() || line.take("#")) continue;
      if (version) {
        parse_line(line);
      } else {
        parse_version(line);
        version = true;
      }
      if (!line.at_end()) line.fail_here("the end of the line");
    }
    TextLine end("", number_ + 1);
    if (!version) parse_version(end);
    if (open_) {
      end.fail(
          fmt::format("the body of function '{}' does not end, expected "
                      "'}}'",
                      open_->name()));
    }
    collect_args(end);
    resolve_followers();
    return std::move(text_);
  }

 private:
  static void parse_version(TextLine& line) {
    if (!line.take_word("berth-graph")) line.fail_here("'berth-graph 1'");
    const int64_t version = line.integer("a version");
    if (version != 1) {
      line.fail(fmt::format("graph format {}, expected 1", version));
    }
  }

  void parse_line(TextLine& line) {
    if (open_ && line.take("}")) {
      end_body(line);
      return;
    }
    const std::string_view word = line.at_word() ? line.word("") : "";
    if (word == "node") {
      parse_node(line);
    } else if (word == "return") {
      parse_return(line);
    } else if (open_) {
      line.fail(
          fmt::format("'{}' begins no statement of a function, expected node, "
                      "return or '}}'",
                      word));
    } else if (word == "op") {
      declare_op(line);
    } else if (word == "kernel") {
      declare_kernel(line);
    } else if (word == "device") {
      text_.devices.push_back(parse_device(line));
    } else if (word == "function") {
      declare_function(line);
    } else if (word == "graph") {
      text_.graph.name = line.name("the name of the graph");
    } else {
      line.fail(
          fmt::format("'{}' begins no statement, expected graph, op, "
                      "kernel, device, function, node or return",
                      word));
    }
  }

  void declare_op(TextLine& line) {
    auto op = parse_op(line);
    if (!ops_.emplace(op->name(), op.get()).second) {
      line.fail(
          fmt::format("op '{}' again, expected one declaration", op->name()));
    }
    text_.graph.declared_ops.push_back(std::move(op));
  }

  void declare_kernel(TextLine& line) {
    text_.kernels.push_back(parse_kernel(line));
    find_op(line, text_.kernels.back().op);
  }

  void declare_function(TextLine& line) {
    auto f = parse_function(line);
    if (functions_.contains(f->name())) {
      line.fail(fmt::format("function '{}' again, expected one declaration",
                            f->name()));
    }
    if (line.take("{")) {
      open_ = std::move(f);
      swap_body();
      return;
    }
    add_function(std::move(f));
  }

  void add_function(std::shared_ptr<Callable> f) {
    functions_.emplace(f->name(), f);
    text_.functions.push_back(std::move(f));
  }

  // Between the lines of a function, what is read goes into its graph.
  void swap_body() {
    std::swap(text_.graph, outer_.graph);
    std::swap(nodes_, outer_.nodes);
    std::swap(followers_, outer_.followers);
  }

  void end_body(TextLine& line) {
    collect_args(line);
    resolve_followers();
    Graph body = std::move(text_.graph);
    body.name = open_->name();
    text_.graph = Graph();
    nodes_.clear();
    followers_.clear();
    swap_body();
    auto f = std::make_shared<Body>(std::move(body));
    auto same = [](const std::vector<TensorSpec>& a,
                   const std::vector<TensorSpec>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [](const TensorSpec& x, const TensorSpec& y) {
                          return x.dtype == y.dtype && x.shape == y.shape;
                        });
    };
    if (!same(f->input_specs(), open_->input_specs()) ||
        !same(f->output_specs(), open_->output_specs())) {
      line.fail(fmt::format(
          "the arguments or results of function '{}' are not those of its "
          "declaration, expected the same",
          f->name()));
    }
    open_ = nullptr;
    add_function(std::move(f));
  }

  const OpDef& find_op(TextLine& line, const std::string& name) const {
    if (const auto it = ops_.find(name); it != ops_.end()) return *it->second;
    if (const OpDef* op = OpRegistry::get().find(name)) return *op;
    line.fail(
        fmt::format("op '{}' is unknown, expected an op of the catalogue "
                    "or a line 'op {} (...) -> (...)' above",
                    name, name));
  }

  int32_t find_node(TextLine& line, const std::string& name) const {
    const auto it = nodes_.find(name);
    if (it == nodes_.end()) {
      line.fail(
          fmt::format("node '{}' is not there, expected the name of a "
                      "node above",
                      name));
    }
    return it->second;
  }

  ValueRef parse_ref(TextLine& line) const {
    const int32_t node = find_node(line, line.name("the name of a node"));
    line.expect(":");
    const int64_t output = line.integer("the number of an output");
    const size_t n = text_.graph[node].outputs.size();
    if (output < 0 || static_cast<uint64_t>(output) >= n) {
      line.fail(fmt::format("output {} of '{}', expected 0 to {}: it has {}",
                            output, text_.graph[node].name,
                            static_cast<int64_t>(n) - 1, n));
    }
    return {node, static_cast<int32_t>(output)};
  }

  void parse_return(TextLine& line) {
    if (!text_.graph.outputs.empty()) {
      line.fail("'return' again, expected one such line");
    }
    do {
      text_.graph.outputs.push_back(parse_ref(line));
    } while (line.take(","));
  }

  void parse_node(TextLine& line) {
    Node node;
    node.name = line.name("the name of a node");
    if (node.name.empty()) line.fail("a node without name, expected one");
    line.expect("=");
    node.op = &find_op(line, line.name("the name of an op"));
    parse_inputs(line, node);
    if (line.take("{")) parse_attrs(line, node);
    if (line.take("->")) {
      do {
        node.outputs.push_back(parse_spec(line));
      } while (line.take(","));
    }
    check(line, node);
    NodeCost cost;
    parse_clauses(line, node, cost);
    add(line, std::move(node), std::move(cost));
  }

  void add(TextLine& line, Node node, NodeCost cost) {
    const int32_t at = text_.graph.size();
    if (!nodes_.emplace(node.name, at).second) {
      line.fail(
          fmt::format("node '{}' again, expected distinct names", node.name));
    }
    text_.graph.add(std::move(node));
    if (open_ && !cost.empty()) {
      line.fail("time or bytes in a function, expected them on calls of it");
    }
    if (open_) return;
    if (cost.empty() && text_.costs.empty()) return;
    text_.costs.resize(static_cast<size_t>(at) + 1);
    text_.costs.back() = std::move(cost);
  }

  void parse_inputs(TextLine& line, Node& node) const {
    line.expect("(");
    for (bool first = true; !line.take(")"); first = false) {
      if (!first) line.expect(",");
      if (line.take("^")) {
        const std::string name = line.name("the name of a node");
        node.controls.push_back(find_node(line, name));
      } else if (node.controls.empty()) {
        node.inputs.push_back(parse_ref(line));
      } else {
        line.fail_here("'^': controls stand behind the inputs");
      }
    }
    std::sort(node.controls.begin(), node.controls.end());
    node.controls.erase(std::unique(node.controls.begin(), node.controls.end()),
                        node.controls.end());
  }

  void parse_attrs(TextLine& line, Node& node) const {
    std::vector<Attrs::Pair> pairs;
    for (bool first = true; !line.take("}"); first = false) {
      if (!first) line.expect(",");
      std::string name = line.name("the name of an attribute");
      line.expect("=");
      for (const auto& [other, value] : pairs) {
        if (other == name) {
          line.fail(fmt::format("attribute '{}' again, expected distinct names",
                                name));
        }
      }
      AttrValue value = parse_attr(line);
      check_attr(line, *node.op, name, value);
      pairs.emplace_back(std::move(name), std::move(value));
    }
    node.attrs = AttrsRef(std::move(pairs));
  }

  // The catalogue knows the names and types of its attributes.
  static void check_attr(TextLine& line, const OpDef& op,
                         const std::string& name, const AttrValue& value) {
    if (op.infer() == nullptr) return;
    for (const AttrDef& a : op.attrs()) {
      if (a.name != name) continue;
      if (a.default_value.index() == value.index()) return;
      line.fail(
          fmt::format("attribute '{}' of {} has another type, expected "
                      "{}",
                      name, op.name(), type_name(a.default_value.index())));
    }
    line.fail(
        fmt::format("{} has no attribute '{}', expected one of its "
                    "attributes",
                    op.name(), name));
  }

  static const char* type_name(size_t index) {
    constexpr const char* kNames[std::variant_size_v<AttrValue>] = {
        "true or false",   "an integer",   "a number with '.' or 'e'",
        "a quoted string", "a dtype",      "shape[...]",
        "ints[...]",       "doubles[...]", "strings[...]",
        "tensor(...)",     "@function"};
    return kNames[index];
  }

  AttrValue parse_attr(TextLine& line) const {
    if (line.at_quote()) return line.quoted("a string");
    if (line.take("@")) return find_function(line);
    if (line.at_number()) return parse_number(line);
    if (line.take_word("true")) return true;
    if (line.take_word("false")) return false;
    if (line.take_word("shape")) return parse_shape(line);
    if (line.take_word("tensor")) return parse_tensor(line);
    if (line.take_word("ints")) return parse_ints(line);
    if (line.take_word("doubles")) {
      return parse_list<double>(line,
                                [](TextLine& l) { return parse_double(l); });
    }
    if (line.take_word("strings")) {
      return parse_list<std::string>(
          line, [](TextLine& l) { return l.quoted("a string"); });
    }
    if (line.at_special_number()) return parse_double(line);
    return parse_dtype(line);
  }

  static AttrValue parse_number(TextLine& line) {
    TextLine copy = line;
    const std::string_view digits = copy.number("a number");
    if (digits.find_first_of(".einx") != std::string_view::npos) {
      return parse_double(line);
    }
    return line.integer("an integer");
  }

  template <class T, class Read>
  static std::vector<T> parse_list(TextLine& line, Read read) {
    std::vector<T> list;
    line.expect("[");
    while (!line.take("]")) {
      if (!list.empty()) line.expect(",");
      list.push_back(read(line));
    }
    return list;
  }

  static std::vector<int64_t> parse_ints(TextLine& line) {
    return parse_list<int64_t>(
        line, [](TextLine& l) { return l.integer("an integer"); });
  }

  std::shared_ptr<Callable> find_function(TextLine& line) const {
    const std::string name = line.name("the name of a function");
    const auto it = functions_.find(name);
    if (it == functions_.end()) {
      line.fail(
          fmt::format("function '{}' is not declared, expected a line "
                      "'function {} (...) -> (...)' above",
                      name, name));
    }
    return it->second;
  }

  // A node of the catalogue must agree with its shape rule, one of a declared
  // op with its declaration.
  void check(TextLine& line, const Node& node) const {
    const OpDef& op = *node.op;
    if (op.infer() == nullptr) {
      check_declared(line, node);
      return;
    }
    check_required(line, node);
    std::vector<SpecView> in;
    for (const ValueRef v : node.inputs) {
      in.push_back(text_.graph.spec(v).view());
    }
    std::vector<OutSpec> out(node.outputs.size());
    try {
      const int n = op.num_outputs(node.attrs.get());
      if (static_cast<size_t>(n) != out.size()) {
        line.fail(fmt::format("{} outputs, expected {} of {}", out.size(), n,
                              op.name()));
      }
      infer_outputs(op, node.attrs.get(), in, out);
    } catch (const errors::Error& error) {
      const std::string_view what = error.what();
      if (what.starts_with("line ")) throw;
      line.fail(std::string(what));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      check_output(line, node, i, out[i]);
    }
  }

  static void check_required(TextLine& line, const Node& node) {
    for (const AttrDef& a : node.op->attrs()) {
      if (!a.required) continue;
      if (node.attrs.get() && node.attrs.get()->find(a.name)) continue;
      line.fail(fmt::format("{} without attribute '{}', expected {}",
                            node.op->name(), a.name,
                            type_name(a.default_value.index())));
    }
  }

  static void check_output(TextLine& line, const Node& node, size_t i,
                           const OutSpec& rule) {
    const OutSpec& said = node.outputs[i];
    if (said.dtype == rule.dtype && said.variable == rule.variable &&
        said.shape.compatible_with(rule.shape) && shape_fits(rule.shape)) {
      return;
    }
    std::string a, b;
    append_spec(a, said);
    append_spec(b, rule);
    line.fail(fmt::format("output {} of '{}' is {}, expected {} of {}", i,
                          node.name, a, b, node.op->name()));
  }

  void check_declared(TextLine& line, const Node& node) const {
    const OpDef& op = *node.op;
    const size_t want = op.inputs().size(), have = node.inputs.size();
    if (have < want || (have > want && !op.variadic())) {
      line.fail(fmt::format("{} inputs, expected {}{} of {}", have, want,
                            op.variadic() ? " or more" : "", op.name()));
    }
    for (size_t i = 0; i < have; ++i) {
      const DType d = text_.graph.spec(node.inputs[i]).dtype;
      const ArgDef& arg = op.input(static_cast<int>(i));
      if (arg.types & dtype_bit(d)) continue;
      line.fail(
          fmt::format("input {} is {}, expected a dtype that '{}' of {} "
                      "takes",
                      i, name_of(d), arg.name, op.name()));
    }
    const auto& names = op.outputs();
    const bool repeated = !names.empty() && names.back().ends_with(kRepeated);
    const size_t least = names.size() - (repeated ? 1 : 0);
    const size_t out = node.outputs.size();
    if (out < least || (out > least && !repeated)) {
      line.fail(fmt::format("{} outputs, expected {}{} of {}", out, least,
                            repeated ? " or more" : "", op.name()));
    }
  }

  void parse_clauses(TextLine& line, Node& node, NodeCost& cost) {
    while (!line.at_end()) {
      if (node.requested.empty() && line.take_word("on")) {
        node.requested = line.name("a device name");
      } else if (node.assigned.empty() && line.take_word("at")) {
        node.assigned = line.name("a device name");
      } else if (node.colocated.empty() && line.take_word("with")) {
        do {
          node.colocated.push_back(line.name("the name of a node or group"));
        } while (line.take(","));
      } else if (line.take_word("follows")) {
        followers_.push_back(
            {text_.graph.size(), number_, line.name("the name of a node")});
      } else if (node.sources.empty() && line.take_word("from")) {
        parse_sources(line, node);
      } else if (cost.time_us.empty() && line.take_word("time")) {
        do {
          std::string type = line.name("a device type");
          cost.time_us.emplace_back(std::move(type), parse_double(line));
        } while (line.take(","));
      } else if (cost.bytes.empty() && line.take_word("bytes")) {
        do {
          cost.bytes.push_back(line.integer("a number of bytes"));
        } while (line.take(","));
      } else {
        line.fail_here(
            "'->', on, at, with, follows, from, time, bytes (each once) or "
            "the end of the line");
      }
    }
  }

  static void parse_sources(TextLine& line, Node& node) {
    do {
      NodeSource source;
      source.name = line.name("the name of a source");
      if (line.take("(")) {
        std::string file = line.name("a file name");
        source.site.file = intern_file(std::move(file));
        line.expect(":");
        const int64_t number = line.integer("a line number");
        if (number < 0 || number > std::numeric_limits<int>::max()) {
          line.fail(
              fmt::format("source line {}, expected one in 32 bits", number));
        }
        source.site.line = static_cast<int>(number);
        line.expect(")");
      }
      node.sources.push_back(std::move(source));
    } while (line.take(","));
  }

  void resolve_followers() {
    for (const Follower& c : followers_) {
      TextLine line("", c.line);
      const int32_t leader = find_node(line, c.leader);
      if (leader == c.node) {
        line.fail(
            fmt::format("node '{}' follows itself, expected "
                        "another",
                        c.leader));
      }
      text_.graph[c.node].follows = leader;
    }
    if (!open_ && !text_.costs.empty()) {
      text_.costs.resize(text_.graph.nodes.size());
    }
  }

  void collect_args(TextLine& line) {
    Graph& graph = text_.graph;
    std::vector<std::pair<int64_t, int32_t>> args;
    for (int32_t i = 0; i < graph.size(); ++i) {
      const Node& node = graph[i];
      if (node.op->infer() == nullptr || node.op->name() != "_Arg") continue;
      args.emplace_back(node.op->attr<int64_t>(node.attrs.get(), "index"), i);
    }
    std::sort(args.begin(), args.end());
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].first != static_cast<int64_t>(i)) {
        line.fail(
            fmt::format("the _Arg nodes have index {} in place {}, "
                        "expected 0, 1, ... once each",
                        args[i].first, i));
      }
      graph.args.push_back(args[i].second);
    }
  }

  struct Follower {
    int32_t node;
    int64_t line;
    std::string leader;
  };

  struct Outer {
    Graph graph;
    std::unordered_map<std::string, int32_t> nodes;
    std::vector<Follower> followers;
  };

  GraphText text_;
  Outer outer_;                     // while a function is open
  std::shared_ptr<Callable> open_;  // its declaration
  int64_t number_ = 0;
  std::unordered_map<std::string, const OpDef*> ops_;
  std::unordered_map<std::string, std::shared_ptr<Callable>> functions_;
  std::unordered_map<std::string, int32_t> nodes_;
  std::vector<Follower> followers_;
};

}  // namespace

GraphText parse_text(std::string_view text) { return Parser().run(text); }

Graph parse_graph(std::string_view text) {
  return std::move(parse_text(text).graph);
}

}  // namespace berth
