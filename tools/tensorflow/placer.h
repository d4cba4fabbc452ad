// Graphs, registrations and the placer of TensorFlow's tests over place().
// Included by shim.h. Functions are not here: tools/tensorflow_tests leaves
// tests out that call any.

#ifndef BERTH_TOOLS_TENSORFLOW_PLACER_H_
#define BERTH_TOOLS_TENSORFLOW_PLACER_H_

#include "tools/tensorflow/shim.h"

namespace tensorflow {

// Registrations.

enum DataType { DT_FLOAT, DT_RESOURCE, DT_STRING, DT_INT32, DT_VARIANT };

struct OpShape {
  std::vector<string> inputs, outputs;  // "float", "Ref(float)", "T"
  bool metadata = false;
};

struct Registry {
  struct Kernel {
    string op, type;
    int priority = 0;
  };
  std::map<string, OpShape> ops = {{"Shape", {{"any"}, {"int32"}, true}},
                                   {"_Arg", {{}, {"T"}}},
                                   {"_Retval", {{"T"}, {}}},
                                   {"Identity", {{"T"}, {"T"}}},
                                   {"Const", {{}, {"T"}}},
                                   {"Cast", {{"float"}, {"int32"}}},
                                   {"Mul", {{"T", "T"}, {"T"}}},
                                   {"Add", {{"T", "T"}, {"T"}}}};
  std::vector<Kernel> kernels;
  static Registry& get() {
    static auto* r = new Registry;
    return *r;
  }
};

namespace full_type {
struct Generic {};
inline Generic UnaryGeneric(int) { return {}; }
}  // namespace full_type
enum { TFT_DATASET };

class OpRegistration {
 public:
  explicit OpRegistration(const string& name) : op_(Registry::get().ops[name]) {
    op_ = {};
  }
  OpRegistration& Input(const string& arg) { return add(&op_.inputs, arg); }
  OpRegistration& Output(const string& arg) { return add(&op_.outputs, arg); }
  OpRegistration& Attr(const string&) { return *this; }
  OpRegistration& SetIsStateful() { return *this; }
  OpRegistration& SetTypeConstructor(full_type::Generic) { return *this; }
  template <class Fn>
  OpRegistration& SetShapeFn(Fn&&) {
    return *this;
  }

 private:
  OpRegistration& add(std::vector<string>* list, const string& arg) {
    list->push_back(arg.substr(arg.find(": ") + 2));
    return *this;
  }
  OpShape& op_;
};

namespace register_kernel {
class Name {
 public:
  explicit Name(const string& op) : at_(Registry::get().kernels.size()) {
    Registry::get().kernels.push_back({op, "", 0});
  }
  Name& Device(const string& type) {
    Registry::get().kernels[at_].type = type;
    return *this;
  }
  Name& Priority(int priority) {
    Registry::get().kernels[at_].priority = priority;
    return *this;
  }

 private:
  size_t at_;
};
}  // namespace register_kernel

#define SHIM_JOIN2(a, b) a##b
#define SHIM_JOIN(a, b) SHIM_JOIN2(a, b)
#define REGISTER_OP(name)                                               \
  [[maybe_unused]] static const auto SHIM_JOIN(shim_op_, __COUNTER__) = \
      ::tensorflow::OpRegistration(name)
#define REGISTER_KERNEL_BUILDER(builder, kernel)                            \
  [[maybe_unused]] static const auto SHIM_JOIN(shim_kernel_, __COUNTER__) = \
      ::tensorflow::register_kernel::builder

struct OpKernelConstruction;
struct OpKernelContext;
class OpKernel {
 public:
  explicit OpKernel(OpKernelConstruction*) {}
  virtual ~OpKernel() = default;
  virtual void Compute(OpKernelContext*) = 0;
};
struct OpRegistry {
  static OpRegistry* Global() { return nullptr; }
};

// Devices.

class DeviceType {
 public:
  DeviceType(const string& type) : type_(type) {}  // NOLINT: as there
  DeviceType(const char* type) : type_(type) {}    // NOLINT: as there
  const string& type() const { return type_; }

 private:
  string type_;
};
class DeviceAttributes {
 public:
  void set_name(const string& s) { name_ = s; }
  void set_device_type(const string& s) { type_ = s; }
  const string& name() const { return name_; }
  const string& device_type() const { return type_; }

 private:
  string name_, type_;
};
struct Allocator;
struct AllocatorAttributes {};
class Device {
 public:
  Device(void*, const DeviceAttributes& a) : attributes_(a) {}
  virtual ~Device() = default;
  virtual Status Sync() { return {}; }
  virtual Allocator* GetAllocator(AllocatorAttributes) { return nullptr; }
  const DeviceAttributes& attributes() const { return attributes_; }
  const string& name() const { return attributes_.name(); }

 private:
  DeviceAttributes attributes_;
};
struct SessionOptions;
class DeviceFactory {
 public:
  virtual ~DeviceFactory() = default;
  virtual Status ListPhysicalDevices(std::vector<string>*) { return {}; }
  virtual Status CreateDevices(const SessionOptions&, const string&,
                               std::vector<std::unique_ptr<Device>>*) {
    return {};
  }
};
class DeviceSet {
 public:
  void AddDevice(Device* d) { devices_.push_back(d); }
  const std::vector<Device*>& devices() const { return devices_; }
  const Device* FindDeviceByName(const string& name) const {
    static const auto* none = new Device(nullptr, {});
    for (const Device* d : devices_) {
      if (d->name() == name) return d;
    }
    return none;
  }

 private:
  std::vector<Device*> devices_;
};

// Graphs.

class Node;
struct Edge {
  Edge(Node* n) : node(n) {}  // NOLINT: as NodeOut
  Edge(Node* n, int i) : node(n), index(i) {}
  Node* node;
  int index = 0;
};
class Node {
 public:
  const string& name() const { return name_; }
  int id() const { return id_; }
  const string& assigned_device_name() const { return assigned_; }
  void set_assigned_device_name(const string& s) { assigned_ = s; }
  const string& requested_device() const { return requested_; }
  void set_requested_device(const string& s) { requested_ = s; }

  string name_, op_, assigned_, requested_;
  int id_ = 0;
  bool resource_ = false;  // of the attribute T
  std::vector<std::pair<string, int>> inputs_;
  std::vector<string> groups_;
};

struct FunctionDef {};
struct FunctionLibraryDefinition {};
class Graph {
 public:
  explicit Graph(OpRegistry*) {}
  const FunctionLibraryDefinition& flib_def() const { return functions_; }
  std::vector<Node*> nodes() const {
    std::vector<Node*> list;
    for (const auto& n : nodes_) list.push_back(n.get());
    return list;
  }
  Node* FindNodeId(int id) const { return nodes_.at(size_t(id)).get(); }
  Node* add(Node node) {
    node.id_ = static_cast<int>(nodes_.size());
    nodes_.push_back(std::make_unique<Node>(std::move(node)));
    return nodes_.back().get();
  }

 private:
  FunctionLibraryDefinition functions_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

inline void read_class(const std::vector<string>& values, Node* node) {
  for (const string& v : values) {
    if (v.rfind("loc:@", 0) == 0) node->groups_.push_back(v.substr(5));
  }
}

class GraphDefBuilder {
 public:
  enum FailImmediatelyType { kFailImmediately };
  explicit GraphDefBuilder(FailImmediatelyType) {}
  struct Options {
    Graph* graph;
    Node node = {};
    Options WithName(const string& s) const {
      Options o = *this;
      o.node.name_ = s;
      return o;
    }
    Options WithDevice(const string& s) const {
      Options o = *this;
      o.node.requested_ = s;
      return o;
    }
    Options WithAttr(const string& name, std::vector<string> values) const {
      Options o = *this;
      if (name == "_class") read_class(values, &o.node);
      return o;
    }
  };
  Options opts() const { return {graph_.get()}; }
  const Graph& graph() const { return *graph_; }

 private:
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>(nullptr);
};

namespace ops {
using NodeOut = Edge;
inline Node* any_op(const string& op, const std::vector<Edge>& in,
                    GraphDefBuilder::Options o) {
  o.node.op_ = op;
  for (const Edge& e : in) o.node.inputs_.emplace_back(e.node->name_, e.index);
  return o.graph->add(o.node);
}
inline Node* SourceOp(const string& op, const GraphDefBuilder::Options& o) {
  return any_op(op, {}, o);
}
inline Node* UnaryOp(const string& op, Edge x,
                     const GraphDefBuilder::Options& o) {
  return any_op(op, {x}, o);
}
inline Node* BinaryOp(const string& op, Edge x, Edge y,
                      const GraphDefBuilder::Options& o) {
  return any_op(op, {x, y}, o);
}
}  // namespace ops

struct GraphDef {
  std::vector<Node> nodes;
};
struct GraphConstructorOptions {};
inline Status GraphDefBuilderToGraph(const GraphDefBuilder& b, Graph* graph) {
  for (const Node* n : b.graph().nodes()) graph->add(*n);
  return {};
}
inline Status ConvertGraphDefToGraph(const GraphConstructorOptions&,
                                     const GraphDef& def, Graph* graph) {
  for (const Node& n : def.nodes) graph->add(n);
  return {};
}

namespace gtl {
template <class T>
struct ArraySlice : std::vector<T> {
  ArraySlice(std::initializer_list<T> list) : std::vector<T>(list) {}
};
}  // namespace gtl

}  // namespace tensorflow

namespace absl {
template <class T>
using Span = tensorflow::gtl::ArraySlice<std::remove_const_t<T>>;
}

namespace tensorflow {

// Functions have names alone: no test that calls one is compiled.
struct FunctionDefHelper {};
namespace test::function {
struct AttrValue {
  AttrValue(DataType t) : type(t) {}                           // NOLINT
  AttrValue(const gtl::ArraySlice<string>& s) : strings(s) {}  // NOLINT
  DataType type = DT_FLOAT;
  std::vector<string> strings;
};
inline Node NDef(const string& name, const string& op,
                 const std::vector<string>& inputs,
                 const std::vector<std::pair<string, AttrValue>>& attrs = {},
                 const string& device = "") {
  Node n;
  n.name_ = name;
  n.op_ = op;
  n.requested_ = device;
  for (const string& in : inputs) {
    const size_t colon = in.find(':');
    n.inputs_.emplace_back(
        in.substr(0, colon),
        colon == in.npos ? 0 : std::stoi(in.substr(colon + 1)));
  }
  for (const auto& [key, value] : attrs) {
    if (key == "T") n.resource_ = value.type == DT_RESOURCE;
    if (key == "_class") read_class(value.strings, &n);
  }
  return n;
}
inline GraphDef GDef(const std::vector<Node>& nodes,
                     const std::vector<FunctionDef>& = {}) {
  return {nodes};
}
inline FunctionDef ResourceOutput() { return {}; }
inline FunctionDef ResourceIdentity() { return {}; }
inline FunctionDef Swap() { return {}; }
}  // namespace test::function

// Options and passes that do nothing here.

struct OptimizerOptions {
  enum { L0, OFF };
  void set_opt_level(int) {}
  void set_global_jit_level(int) {}
};
struct RewriterConfig {
  void set_disable_meta_optimizer(bool) {}
};
struct GraphOptions {
  OptimizerOptions optimizer;
  RewriterConfig rewrite;
  OptimizerOptions* mutable_optimizer_options() { return &optimizer; }
  RewriterConfig* mutable_rewrite_options() { return &rewrite; }
};
struct SessionOptions {
  struct Config {
    GraphOptions graph;
    GraphOptions* mutable_graph_options() { return &graph; }
  } config;
};
struct GraphOptimizationPassOptions {
  std::unique_ptr<Graph>* graph = nullptr;
  FunctionLibraryDefinition* flib_def = nullptr;
  DeviceSet* device_set = nullptr;
  const SessionOptions* session_options = nullptr;
  string debug_filename_prefix;
};
struct OptimizationPassRegistry {
  enum { PRE_PLACEMENT };
  static OptimizationPassRegistry* Global() {
    static auto* r = new OptimizationPassRegistry;
    return r;
  }
  Status RunGrouping(int, const GraphOptimizationPassOptions&) { return {}; }
};

// The placer.

class Placer {
 public:
  // `rest`: the default local device, in versions that have one, whether
  // placement is soft and whether it is logged.
  template <class... Rest>
  Placer(Graph* graph, const string&, const FunctionLibraryDefinition*,
         const DeviceSet* devices, Rest... rest)
      : graph_(*graph), devices_(*devices) {
    const std::vector<bool> flags = {flag(rest)...};
    soft_ = flags[flags.size() - 2];
  }

  Status Run(const GraphOptimizationPassOptions&) { return Run(); }
  Status Run() {
    try {
      check_names();
      berth::GraphText text = read(graph_text());
      std::vector<string> names;
      for (const Device* d : devices_.devices())
        names.push_back(here(d->name()));
      berth::PlaceOptions options = berth::place_options(text, names);
      options.policy = berth::PlacePolicy::kTensorFlow;
      options.soft = soft_ ? berth::config::SoftPlacement::kSilent
                           : berth::config::SoftPlacement::kError;
      for (const Node* n : graph_.nodes()) {
        if (n->assigned_.empty()) continue;
        text.graph[n->id_].assigned = here(n->assigned_);
      }
      berth::place(text.graph, options);
      for (Node* n : graph_.nodes()) {
        n->assigned_ = there(text.graph[n->id_].assigned.text());
      }
    } catch (const berth::errors::Error& e) {
      return refused(e);
    }
    return {};
  }

 private:
  template <class T>
  static bool flag(T value) {
    if constexpr (std::is_same_v<T, bool>) return value;
    return false;
  }
  static string replaced(string s, const string& from, const string& to) {
    for (size_t at = 0; (at = s.find(from, at)) != s.npos; at += to.size()) {
      s.replace(at, from.size(), to);
    }
    return s;
  }
  // Types that tests call gpu and cpu are others than theirs.
  static string here(const string& s) {
    string r =
        replaced(replaced(s, ":gpu:", ":REALGPU:"), ":cpu:", ":REALCPU:");
    return replaced(replaced(r, "FakeGPU", "GPU"), "FakeCPU", "CPU");
  }
  static string there(const string& s) {
    return replaced(replaced(s, "device:GPU", "device:FakeGPU"), "device:CPU",
                    "device:FakeCPU");
  }

  void check_names() const {
    for (const Node* n : graph_.nodes()) {
      berth::DeviceName::parse(n->requested_);
      berth::DeviceName::parse(n->assigned_);
    }
  }

  // A text that is not understood is an error of this program, not a rejected
  // graph.
  static berth::GraphText read(const string& text) {
    try {
      return berth::parse_text(text);
    } catch (const berth::errors::Error& e) {
      throw std::logic_error(absl::StrCat(e.what(), "\n", text));
    }
  }

  static string type_of(const string& declared, bool resource) {
    if (declared == "T") return resource ? "resource" : "float";
    return declared;
  }
  static string op_name(const Node& n) {
    return absl::StrCat("T", n.op_, n.resource_ ? "Handle" : "");
  }

  string graph_text() const {
    string s = "berth-graph 1\n";
    std::unordered_set<string> declared;
    for (const Node* n : graph_.nodes()) {
      if (declared.insert(op_name(*n)).second) s += op_text(*n);
    }
    for (const Node* n : graph_.nodes()) s += node_text(*n);
    return s;
  }

  static string op_text(const Node& n) {
    const OpShape& shape = Registry::get().ops.at(n.op_);
    string s = "op " + op_name(n) + " (";
    for (size_t i = 0; i < shape.inputs.size(); ++i) {
      const string type = type_of(shape.inputs[i], n.resource_);
      absl::ErrorText kind(type == "resource"           ? "resource"
                           : type.rfind("Ref(", 0) == 0 ? "any ref"
                                                        : "any");
      s += absl::StrCat(i ? ", " : "", "i", i, ": ", kind);
    }
    s += ") -> (";
    for (size_t i = 0; i < shape.outputs.size(); ++i) {
      const bool ref = shape.outputs[i].rfind("Ref(", 0) == 0;
      s += absl::StrCat(i ? ", " : "", "o", i, ref ? " ref" : "");
    }
    s += absl::StrCat(")", shape.metadata ? " metadata" : "", "\n");
    for (const Registry::Kernel& k : Registry::get().kernels) {
      if (k.op != n.op_) continue;
      s += absl::StrCat("kernel ", op_name(n), " on ", here(k.type),
                        " priority ", k.priority, "\n");
    }
    return s;
  }

  static string node_text(const Node& n) {
    const OpShape& shape = Registry::get().ops.at(n.op_);
    string s = absl::StrCat("node ", n.name_, " = ", op_name(n), "(");
    for (size_t i = 0; i < n.inputs_.size(); ++i) {
      s += absl::StrCat(i ? ", " : "", n.inputs_[i].first, ":",
                        n.inputs_[i].second);
    }
    s += ")";
    for (size_t i = 0; i < shape.outputs.size(); ++i) {
      const string type = type_of(shape.outputs[i], n.resource_);
      s += absl::StrCat(i ? ", " : " -> ", type == "resource"
                                               ? "resource(float32)[]"
                                           : type == "int32" ? "int32[]"
                                                             : "float32[]");
    }
    if (!n.requested_.empty()) s += " on \"" + here(n.requested_) + "\"";
    if (!n.groups_.empty()) s += " with " + absl::StrJoin(n.groups_, ", ");
    return s + "\n";
  }

  Graph& graph_;
  const DeviceSet& devices_;
  bool soft_ = true;
};

}  // namespace tensorflow

#endif  // BERTH_TOOLS_TENSORFLOW_PLACER_H_
