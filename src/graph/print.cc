// Prints graph texts: docs/graph-format.md.

#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "graph/graph_text.h"
#include "graph/text_line.h"
#include "graph/text_value.h"

namespace berth {

namespace {

class Printer {
 public:
  // `costs` is empty or one per node.
  Printer(const Graph& graph, const std::vector<NodeCost>& costs)
      : graph_(graph), costs_(costs), functions_(own_functions_) {}

  std::string run(const GraphText* text) {
    out_ = "berth-graph 1\ngraph ";
    append_name(out_, graph_.name);
    out_ += '\n';
    for (const auto& op : graph_.declared_ops) print_op(*op);
    if (text) print_declarations(*text);
    name_functions(text);
    for (int32_t i = 0; i < graph_.size(); ++i) print_node(i);
    print_outputs();
    return std::move(out_);
  }

 private:
  struct Functions {
    std::unordered_map<const Callable*, std::string> names;
    std::set<std::string> taken;
  };

  // For the body of a function: the functions have their names already.
  Printer(const Graph& graph, Functions& functions)
      : graph_(graph), functions_(functions) {}

  template <class... T>
  void put(fmt::format_string<T...> format, T&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<T>(args)...);
  }
  // Returns ", " from the second call on.
  static const char* comma(bool& first) {
    return std::exchange(first, false) ? "" : ", ";
  }

  void print_types(DTypeSet types) {
    if (types == kAnyType) {
      out_ += "any";
      return;
    }
    const char* bar = "";
    for (int d = 1; d < kNumDTypes; ++d) {
      if (!(types >> d & 1)) continue;
      out_ += bar;
      out_ += name_of(static_cast<DType>(d));
      bar = "|";
    }
  }

  void print_op(const OpDef& op) {
    out_ += "op ";
    append_name(out_, op.name());
    out_ += " (";
    bool first = true;
    for (const ArgDef& arg : op.inputs()) {
      out_ += comma(first);
      append_name(out_, arg.name);
      out_ += ": ";
      print_types(arg.types);
      constexpr const char* kAccess[] = {"", " read", " write", " overwrite"};
      out_ += kAccess[static_cast<int>(arg.access)];
      if (arg.variadic) out_ += " repeated";
    }
    out_ += ") -> (";
    first = true;
    for (const std::string& name : op.outputs()) {
      out_ += comma(first);
      append_name(out_, name);
    }
    out_ += ")";
    if (op.stateful()) out_ += " stateful";
    if (op.random()) out_ += " random";
    if (op.metadata()) out_ += " metadata";
    if (op.commutative()) out_ += " commutative";
    out_ += '\n';
  }

  void print_declarations(const GraphText& text) {
    for (const KernelDecl& kernel : text.kernels) {
      out_ += "kernel ";
      append_name(out_, kernel.op);
      out_ += " on ";
      bool first = true;
      for (const std::string& type : kernel.device_types) {
        out_ += comma(first);
        append_name(out_, type);
      }
      if (kernel.priority != 0) put(" priority {}", kernel.priority);
      if (kernel.dtypes != kAnyType) {
        out_ += " types ";
        print_types(kernel.dtypes);
      }
      out_ += '\n';
    }
    for (const DeviceDecl& device : text.devices) {
      out_ += "device ";
      append_name(out_, device.name);
      out_ += '\n';
    }
  }

  // Every callee gets a name of its own and a declaration.
  void name_functions(const GraphText* text) {
    if (text) {
      for (const auto& f : text->functions) name_function(*f);
    }
    name_callees(graph_);
  }

  void name_callees(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (!node.attrs.get()) continue;
      for (const auto& [name, value] : node.attrs.get()->pairs()) {
        const auto* f = std::get_if<std::shared_ptr<Callable>>(&value);
        if (f && *f) name_function(**f);
      }
    }
  }

  void name_function(const Callable& f) {
    if (functions_.names.contains(&f)) return;
    if (f.body()) name_callees(*f.body());
    std::string& name = functions_.names[&f];
    name = f.name().empty() ? "function" : f.name();
    const std::string base = name;
    for (int i = 1; !functions_.taken.insert(name).second; ++i) {
      name = fmt::format("{}_{}", base, i);
    }
    out_ += "function ";
    append_name(out_, name);
    out_ += ' ';
    print_specs(f.input_specs());
    out_ += " -> ";
    print_specs(f.output_specs());
    if (f.body()) {
      Printer body(*f.body(), functions_);
      for (int32_t i = 0; i < f.body()->size(); ++i) body.print_node(i);
      body.print_outputs();
      out_ += " {\n" + body.out_ + "}";
    }
    out_ += '\n';
  }

  void print_specs(const std::vector<TensorSpec>& specs) {
    out_ += '(';
    bool first = true;
    for (const TensorSpec& spec : specs) {
      out_ += comma(first);
      append_spec(out_, {spec.dtype, spec.shape});
    }
    out_ += ')';
  }

  void print_value(ValueRef v) {
    append_name(out_, graph_[v.node].name);
    put(":{}", v.output);
  }

  void print_node(int32_t i) {
    const Node& node = graph_[i];
    out_ += "node ";
    append_name(out_, node.name);
    out_ += " = ";
    append_name(out_, node.op->name());
    print_inputs(node);
    print_attrs(node);
    bool first = true;
    for (const OutSpec& spec : node.outputs) {
      out_ += first ? " -> " : ", ";
      first = false;
      append_spec(out_, spec);
    }
    print_placement(node);
    print_sources(node);
    if (!costs_.empty()) print_cost(costs_[i]);
    out_ += '\n';
  }

  void print_inputs(const Node& node) {
    out_ += '(';
    bool first = true;
    for (const ValueRef v : node.inputs) {
      out_ += comma(first);
      print_value(v);
    }
    for (const int32_t c : node.controls) {
      out_ += comma(first);
      out_ += '^';
      append_name(out_, graph_[c].name);
    }
    out_ += ')';
  }

  void print_attrs(const Node& node) {
    if (!node.attrs.get()) return;
    out_ += " {";
    bool first = true;
    for (const auto& [name, value] : node.attrs.get()->pairs()) {
      out_ += comma(first);
      append_name(out_, name);
      out_ += " = ";
      std::visit([this](const auto& v) { print_attr(v); }, value);
    }
    out_ += '}';
  }

  void print_attr(bool v) { out_ += v ? "true" : "false"; }
  void print_attr(int64_t v) { put("{}", v); }
  void print_attr(double v) { append_double(out_, v); }
  void print_attr(const std::string& v) { append_quoted(out_, v); }
  void print_attr(DType v) { out_ += name_of(v); }
  void print_attr(const Tensor& v) { append_tensor(out_, v); }
  void print_attr(const Shape& v) {
    out_ += "shape";
    append_shape(out_, v);
  }
  void print_attr(const std::vector<int64_t>& v) {
    put("ints[{}]", fmt::join(v, ", "));
  }
  void print_attr(const std::vector<double>& v) {
    out_ += "doubles[";
    bool first = true;
    for (const double d : v) {
      out_ += comma(first);
      append_double(out_, d);
    }
    out_ += ']';
  }
  void print_attr(const std::vector<std::string>& v) {
    out_ += "strings[";
    bool first = true;
    for (const std::string& s : v) {
      out_ += comma(first);
      append_quoted(out_, s);
    }
    out_ += ']';
  }
  void print_attr(const std::shared_ptr<Callable>& f) {
    out_ += '@';
    if (f) append_name(out_, functions_.names[f.get()]);
  }

  void print_placement(const Node& node) {
    if (!node.requested.empty()) {
      out_ += " on ";
      append_name(out_, node.requested);
    }
    if (!node.assigned.empty()) {
      out_ += " at ";
      append_name(out_, node.assigned);
    }
    for (size_t i = 0; i < node.colocated.size(); ++i) {
      out_ += i == 0 ? " with " : ", ";
      append_name(out_, node.colocated[i]);
    }
    if (node.follows >= 0) {
      out_ += " follows ";
      append_name(out_, graph_[node.follows].name);
    }
  }

  void print_sources(const Node& node) {
    bool first = true;
    for (const NodeSource& source : node.sources) {
      out_ += first ? " from " : ", ";
      first = false;
      append_name(out_, source.name);
      if (source.site.file == nullptr) continue;
      out_ += " (";
      append_name(out_, source.site.file);
      put(":{})", source.site.line);
    }
  }

  void print_cost(const NodeCost& cost) {
    bool first = true;
    for (const auto& [type, us] : cost.time_us) {
      out_ += first ? " time " : ", ";
      first = false;
      append_name(out_, type);
      out_ += ' ';
      append_double(out_, us);
    }
    if (!cost.bytes.empty()) put(" bytes {}", fmt::join(cost.bytes, ", "));
  }

  void print_outputs() {
    bool first = true;
    for (const ValueRef v : graph_.outputs) {
      out_ += first ? "return " : ", ";
      first = false;
      print_value(v);
    }
    if (!first) out_ += '\n';
  }

  const Graph& graph_;
  const std::vector<NodeCost> costs_;
  std::string out_;
  Functions own_functions_;
  Functions& functions_;
};

}  // namespace

std::string print(const Graph& graph) {
  return Printer(graph, {}).run(nullptr);
}

std::string print(const GraphText& text) {
  return Printer(text.graph, text.costs).run(&text);
}

}  // namespace berth
