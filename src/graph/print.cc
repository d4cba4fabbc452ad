// Prints graph texts: docs/graph-format.md.

#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "graph/declared_function.h"
#include "graph/graph_text.h"
#include "graph/node_part.h"
#include "graph/text_line.h"
#include "graph/text_value.h"

namespace berth {

namespace {

class Printer {
 public:
  // `costs`: null, or empty or one per node.
  Printer(const Graph& graph, const std::vector<NodeCost>* costs)
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

  void print_flags(bool ref, bool on_host) {
    if (ref) out_ += " ref";
    if (on_host) out_ += " host";
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
      if (arg.optional) out_ += " optional";
      print_flags(arg.ref, arg.on_host);
    }
    out_ += ") -> (";
    first = true;
    for (size_t i = 0; i < op.outputs().size(); ++i) {
      out_ += comma(first);
      append_name(out_, op.outputs()[i]);
      const int k = static_cast<int>(i);
      print_flags(op.output_is_ref(k), op.output_on_host(k));
    }
    out_ += ")";
    if (op.stateful()) out_ += " stateful";
    if (op.random()) out_ += " random";
    if (op.metadata()) out_ += " metadata";
    if (op.commutative()) out_ += " commutative";
    out_ += '\n';
  }

  void print_declarations(const GraphText& text) {
    if (!text.local_task.empty()) {
      out_ += "local ";
      append_name(out_, text.local_task);
      out_ += '\n';
    }
    if (!text.type_order.empty()) {
      out_ += "order ";
      print_names(text.type_order);
      out_ += '\n';
    }
    for (const KernelDecl& kernel : text.kernels) print_kernel(kernel);
    for (const ClassDecl& c : text.classes) print_class(c);
    for (const DeviceDecl& device : text.devices) print_device(device);
    for (const LinkDecl& link : text.links) print_link(link);
  }

  // Prints names with commas between them.
  void print_names(const std::vector<std::string>& names) {
    bool first = true;
    for (const std::string& name : names) {
      out_ += comma(first);
      append_name(out_, name);
    }
  }

  void print_amount(const char* what, const std::optional<double>& value) {
    if (!value) return;
    put(" {} ", what);
    append_double(out_, *value);
  }

  void print_kernel(const KernelDecl& kernel) {
    out_ += "kernel ";
    append_name(out_, kernel.op);
    out_ += " on ";
    print_names(kernel.device_types);
    if (kernel.priority != 0) put(" priority {}", kernel.priority);
    if (kernel.dtypes != kAnyType) {
      out_ += " types ";
      print_types(kernel.dtypes);
    }
    if (!kernel.host.empty()) {
      out_ += " host (";
      print_names(kernel.host);
      out_ += ')';
    }
    out_ += '\n';
  }

  void print_class(const ClassDecl& c) {
    out_ += "class ";
    append_name(out_, c.name);
    out_ += " on ";
    append_name(out_, c.type);
    print_amount("flops", c.flops_per_us);
    print_amount("bandwidth", c.bytes_per_us);
    print_amount("launch", c.launch_us);
    out_ += '\n';
  }

  void print_device(const DeviceDecl& device) {
    out_ += "device ";
    append_name(out_, device.name);
    if (!device.parts.empty()) {
      out_ += " of ";
      print_names(device.parts);
    }
    if (device.memory_limit) put(" memory {}", *device.memory_limit);
    if (!device.device_class.empty()) {
      out_ += " class ";
      append_name(out_, device.device_class);
    }
    if (!device.copies.empty()) put(" copies {}", device.copies);
    out_ += '\n';
  }

  void print_link(const LinkDecl& link) {
    out_ += "link ";
    append_name(out_, link.from);
    out_ += " -> ";
    append_name(out_, link.to);
    print_amount("latency", link.latency_us);
    print_amount("bandwidth", link.bytes_per_us);
    if (link.shared >= 0) put(" shared {}", link.shared);
    out_ += '\n';
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
    const Signature signature = signature_of(f);
    print_specs(signature.inputs);
    out_ += " -> ";
    print_specs(signature.outputs);
    if (f.body()) {
      Printer body(*f.body(), functions_);
      for (int32_t i = 0; i < f.body()->size(); ++i) body.print_node(i);
      body.print_outputs();
      out_ += " {\n" + body.out_ + "}";
    }
    out_ += '\n';
  }

  void print_specs(const std::vector<OutSpec>& specs) {
    out_ += '(';
    bool first = true;
    for (const OutSpec& spec : specs) {
      out_ += comma(first);
      append_spec(out_, spec);
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
    if (costs_ && !costs_->empty()) print_cost((*costs_)[i]);
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
      append_name(out_, node.requested.text());
    }
    if (!node.assigned.empty()) {
      out_ += " at ";
      append_name(out_, node.assigned.text());
    }
    if (!node.colocated.empty()) {
      out_ += " with ";
      print_names(node.colocated);
    }
    if (node.follows >= 0) {
      out_ += " follows ";
      append_name(out_, graph_[node.follows].name);
    }
    if (node.replica >= 0) put(" replica {}", node.replica);
    if (node.collective) out_ += " collective";
    if (node.part) {
      out_ += " part ";
      append_part(out_, *node.part);
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
  const std::vector<NodeCost>* costs_ = nullptr;
  std::string out_;
  Functions own_functions_;
  Functions& functions_;
};

}  // namespace

std::string print(const Graph& graph) {
  return Printer(graph, nullptr).run(nullptr);
}

std::string print(const GraphText& text) {
  return Printer(text.graph, &text.costs).run(&text);
}

}  // namespace berth
