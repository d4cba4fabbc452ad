#include "io/written_function.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/saved_function.h"
#include "function/graph_callable.h"
#include "function/trace_call.h"
#include "graph/blob_table.h"
#include "graph/graph_text.h"
#include "graph/replay.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/safetensors.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

struct ConcreteFunction::Impl {
  explicit Impl(std::shared_ptr<GraphCallable> f, std::vector<Variable> v = {})
      : callable(std::move(f)), variables(std::move(v)) {
    const Graph& graph = callable->traced();
    for (const int32_t a : graph.args) {
      inputs.push_back(open_spec(graph[a].outputs[0]));
    }
    for (const ValueRef& v : graph.outputs) {
      outputs.push_back(open_spec(graph.spec(v)));
    }
  }

  // Symbols are dimensions of any length to those who call.
  static TensorSpec open_spec(const OutSpec& s) {
    std::vector<int64_t> dims;
    for (const int64_t d : s.shape) dims.push_back(d < 0 ? -1 : d);
    return {Shape(std::span<const int64_t>(dims)), s.dtype, {}};
  }

  const std::shared_ptr<GraphCallable> callable;
  const std::vector<Variable> variables;
  std::vector<TensorSpec> inputs, outputs;
};

namespace {

constexpr const char* kGraphInFile = "berth.graph";
constexpr const char* kGraphCheck = "berth.graph.crc32c";
constexpr const char* kUntrained = "berth.not_trainable";
constexpr const char* kBlob = "blob/";
constexpr const char* kVariable = "variable/";
constexpr const char* kFunctionEnding = ".safetensors";
constexpr size_t kHashDigits = 32;

std::string crc_text(const std::string& text) {
  return fmt::format("{:08x}", io::checksum(text.data(), text.size()));
}

// The constants that a text names.
std::map<std::string, Tensor> blobs_of(const std::string& text,
                                       const std::string& call) {
  std::map<std::string, Tensor> found;
  std::set<std::string> lost;
  const std::string before = ", blob ";
  for (size_t at = 0; (at = text.find(before, at)) != std::string::npos;) {
    at += before.size();
    const std::string hash = text.substr(at, kHashDigits);
    const bool is_hash =
        hash.size() == kHashDigits &&
        hash.find_first_not_of("0123456789abcdef") == std::string::npos &&
        text.compare(at + kHashDigits, 1, ")") == 0;
    if (!is_hash) continue;  // in a string
    const Tensor t = find_blob(hash);
    if (t.defined()) {
      found[hash] = t;
    } else {
      lost.insert(hash);
    }
  }
  if (lost.empty()) return found;
  throw errors::InvalidArgument(fmt::format(
      "{}: the function holds more than {} bytes of constants; expected "
      "Variables where tensors are that large",
      call, kMaxBlobBytes));
}

std::string function_file(const std::string& path, const std::string& call) {
  if (!path.empty() && !path.ends_with("/") &&
      (path.ends_with(kFunctionEnding) ||
       path.find('.', path.rfind('/') + 1) == std::string::npos)) {
    return path.ends_with(kFunctionEnding) ? path : path + kFunctionEnding;
  }
  throw errors::InvalidArgument(fmt::format(
      "{}: functions are written as safetensors, got the path \"{}\"; expected "
      "\"folder/name{}\"",
      call, path, kFunctionEnding));
}

// The text in an open file; its constants are found from now on.
std::string text_in(const io::SafetensorsFile& file, const std::string& call) {
  const auto& notes = file.metadata();
  const auto text = notes.find(kGraphInFile);
  if (text == notes.end()) {
    throw errors::InvalidArgument(
        fmt::format("{}: there is no graph in \"{}\"; expected a file that "
                    "ConcreteFunction::save() wrote",
                    call, file.path()));
  }
  const auto damaged = [&](const std::string& what) {
    throw errors::DataLoss(
        fmt::format("{}: {} in \"{}\"; copy or save the file "
                    "again",
                    call, what, file.path()));
  };
  const auto check = notes.find(kGraphCheck);
  if (check != notes.end() && check->second != crc_text(text->second)) {
    damaged("the graph is not what was written");
  }
  size_t bytes = 0;
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const std::string& name = file.tensors()[i].name;
    if (!name.starts_with(kBlob)) continue;
    const Tensor t = file.tensor(static_cast<int>(i));
    bytes += t.dtype() == string_ ? 0 : t.impl()->size_bytes();
    if (bytes > kMaxBlobBytes) {
      damaged(fmt::format("there are more than {} bytes of constants",
                          kMaxBlobBytes));
    }
    if (t.dtype() == string_ || keep_blob(t) != name.substr(5)) {
      damaged(fmt::format("\"{}\" is another constant", name));
    }
  }
  return text->second;
}

std::set<std::string> not_trainable(const io::SafetensorsFile& file) {
  std::set<std::string> names;
  const auto it = file.metadata().find(kUntrained);
  if (it == file.metadata().end()) return names;
  const auto list = nlohmann::json::parse(it->second, nullptr, false);
  for (const auto& name : list) {
    if (name.is_string()) names.insert(name.get<std::string>());
  }
  return names;
}

// Variables with the saved values, where the graph declares them.
std::vector<Variable> bind_variables(const io::SafetensorsFile& file,
                                     const std::string& call, Site site,
                                     Graph* graph) {
  std::vector<Variable> made;
  const std::set<std::string> fixed = not_trainable(file);
  for (Node& n : graph->nodes) {
    if (n.op->name() != "VarHandleOp") continue;
    const int i = file.find(kVariable + n.name);
    const auto& shape = n.op->attr<Shape>(n.attrs.get(), "shape");
    const auto dtype = n.op->attr<DType>(n.attrs.get(), "dtype");
    if (i < 0 || file.tensors()[static_cast<size_t>(i)].dtype != dtype ||
        file.tensors()[static_cast<size_t>(i)].shape != shape) {
      throw errors::DataLoss(fmt::format(
          "{}: variable \"{}\" of the graph, {} {}, has no value of that kind "
          "in \"{}\"; copy or save the file again",
          call, n.name, name_of(dtype), shape.str(), file.path()));
    }
    const Variable v(
        file.tensor(i),
        {.name = n.op->attr<std::string>(n.attrs.get(), "shared_name"),
         .trainable = !fixed.contains(n.name)},
        site);
    n.variable = v.handle();
    made.push_back(v);
  }
  return made;
}

}  // namespace

namespace io {

std::optional<std::string> read_function_text(const std::string& path,
                                              const std::string& subject) {
  if (!path.ends_with(kFunctionEnding)) return std::nullopt;
  return text_in(SafetensorsFile(path, subject), subject);
}

}  // namespace io

const std::string& ConcreteFunction::name() const {
  return impl_->callable->name();
}
const std::vector<TensorSpec>& ConcreteFunction::input_specs() const {
  return impl_->inputs;
}
const std::vector<TensorSpec>& ConcreteFunction::output_specs() const {
  return impl_->outputs;
}
std::string ConcreteFunction::text() const {
  return print(impl_->callable->traced());
}

const std::vector<Variable>& ConcreteFunction::variables() const {
  return impl_->variables;
}

Tensors ConcreteFunction::operator()(const Tensors& leaves, Site site) const {
  set_site(site);
  bool fits = leaves.size() == impl_->inputs.size();
  for (size_t i = 0; fits && i < leaves.size(); ++i) {
    fits = leaves[i].defined() && leaves[i].dtype() == impl_->inputs[i].dtype &&
           impl_->inputs[i].shape.compatible_with(leaves[i].shape());
  }
  if (!fits) {
    std::string got, want;
    for (const Tensor& t : leaves) {
      got += t.defined() ? " " + t.spec().str() : " an empty tensor";
    }
    for (const TensorSpec& s : impl_->inputs) want += " " + s.str();
    throw errors::InvalidArgument(
        fmt::format("{}: called with{}; expected{}{}", name(),
                    got.empty() ? " nothing" : got,
                    want.empty() ? " nothing" : want, where_text()));
  }
  GraphCallable& f = *impl_->callable;
  if (tracing()) return replay(f.traced(), leaves);
  if (t_state.top == nullptr) {
    std::vector<const Tensor*> in;
    for (const Tensor& t : leaves) in.push_back(&t);
    Tensors results(impl_->outputs.size());
    f.call(in, results);
    return results;
  }
  static const OpDef& op = op_named("PartitionedCall");
  const std::shared_ptr<GraphCallable> taped = f.taped();
  Tensors args = leaves;
  for (const Tensor& v : taped->variables()) args.push_back(v);
  const AttrsRef attrs({{"f", std::shared_ptr<Callable>(taped)}});
  Tensors results = call_list(op, args, attrs.get());
  results.resize(impl_->outputs.size());
  return results;
}

void ConcreteFunction::save(const std::string& filepath,
                            const SaveFunctionOptions& options,
                            Site site) const {
  const std::string call = fmt::format("save of function \"{}\"{}", name(),
                                       where_text(nullptr, site));
  const std::string path = function_file(filepath, call);
  const Graph& graph = impl_->callable->traced();
  const std::string text = print(graph);
  std::vector<io::TensorToWrite> list;
  for (auto& [hash, t] : blobs_of(text, call))
    list.push_back({kBlob + hash, t});
  nlohmann::json fixed = nlohmann::json::array();
  for (const Node& n : graph.nodes) {
    if (!n.variable.defined()) continue;
    list.push_back({kVariable + n.name, read_variable(n.variable)});
    if (!variable_state(n.variable).trainable) fixed.push_back(n.name);
  }
  if (!options.overwrite && io::is_regular_file(path)) {
    throw errors::AlreadyExists(
        fmt::format("{}: \"{}\" exists; expected a new name, or "
                    "{{.overwrite = true}}",
                    call, path));
  }
  io::make_folder(io::folder_of(path), call);
  const io::WriteLock lock(path, call);
  io::write_safetensors(path, std::move(list),
                        {{kGraphInFile, text},
                         {kGraphCheck, crc_text(text)},
                         {kUntrained, fixed.dump()}},
                        call);
}

ConcreteFunction load_function(const std::string& filepath, Site site) {
  const std::string call =
      fmt::format("load_function{}", where_text(nullptr, site));
  const io::SafetensorsFile file(
      io::is_regular_file(filepath) ? filepath : function_file(filepath, call),
      call);
  const std::string text = text_in(file, call);
  GraphText parsed;
  try {
    parsed = parse_text(text);
  } catch (const errors::InvalidArgument& e) {
    throw errors::InvalidArgument(
        fmt::format("{}: the graph in \"{}\" cannot be read: {}", call,
                    file.path(), e.what()));
  }
  if (!parsed.graph.declared_ops.empty()) {
    throw errors::Unimplemented(fmt::format(
        "{}: the graph in \"{}\" declares op {} itself, which can be placed, "
        "not run; expected ops of the engine",
        call, file.path(), parsed.graph.declared_ops[0]->name()));
  }
  auto variables = bind_variables(file, call, site, &parsed.graph);
  const FunctionOptions options{.name = parsed.graph.name};
  return ConcreteFunction(std::make_shared<ConcreteFunction::Impl>(
      std::make_shared<GraphCallable>(std::move(parsed.graph), options),
      std::move(variables)));
}

namespace internal {

ConcreteFunction trace_concrete(
    const ConcreteFunctionOptions& options,
    const std::function<Tensors(const Tensors&)>& fn,
    std::vector<TensorSpec> leaves, Site site) {
  set_site(site);
  const auto& asked = options.input_signature;
  bool fits = asked.empty() || asked.size() == leaves.size();
  for (size_t i = 0; fits && i < asked.size(); ++i) {
    fits = asked[i].dtype == leaves[i].dtype &&
           asked[i].shape.compatible_with(leaves[i].shape);
    leaves[i] = asked[i];
  }
  if (!fits) {
    throw errors::InvalidArgument(fmt::format(
        "{}: the input_signature has {} specs and does not fit the {} tensors "
        "of the arguments{}",
        options.name, asked.size(), leaves.size(), where_text()));
  }
  const FunctionOptions kept{.name = options.name};
  return ConcreteFunction(
      std::make_shared<ConcreteFunction::Impl>(std::make_shared<GraphCallable>(
          trace_call(options.name, fn, leaves), kept)));
}

}  // namespace internal

}  // namespace berth
