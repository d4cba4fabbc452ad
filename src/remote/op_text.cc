#include "remote/op_text.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "graph/body.h"
#include "graph/text_value.h"
#include "tensor/tensor_impl.h"

namespace berth::remote {

OpText op_text(const PrepareArgs& args) {
  static const OpDef& arg_op = op_named("_Arg");
  static const OpDef& handle_op = op_named("VarHandleOp");
  Graph g;
  g.name = "op";
  Node node;
  for (const SpecView& s : args.in) {
    Node in;
    in.name = fmt::format("in{}", g.size());
    in.outputs = {{s.dtype, *s.shape, s.variable}};
    if (s.dtype == resource) {
      in.op = &handle_op;
      in.attrs = AttrsRef({{"shared_name", in.name},
                           {"dtype", s.variable},
                           {"shape", *s.shape}});
    } else {
      in.op = &arg_op;
      set_arg(in, static_cast<int64_t>(g.args.size()), s.dtype, *s.shape);
      g.args.push_back(g.size());
    }
    node.inputs.push_back({g.add(std::move(in)), 0});
  }
  node.name = "op";
  node.op = args.op;
  node.attrs = AttrsRef::share(args.attrs);
  node.outputs.assign(args.out.begin(), args.out.end());
  g.add(std::move(node));
  return {print(g), blobs_of(g)};
}

namespace {

void collect_blobs(const Graph& graph, std::vector<Tensor>& all) {
  for (const Node& n : graph.nodes) {
    if (n.attrs.get() == nullptr) continue;
    for (const auto& [name, value] : n.attrs.get()->pairs()) {
      const auto* t = std::get_if<Tensor>(&value);
      if (t == nullptr || !t->defined() || t->dtype() == string_ ||
          t->num_elements() <= kMaxInlineElements) {
        continue;
      }
      all.push_back(own_copy(*t, DeviceManager::get().host()));
    }
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      collect_blobs(body, all);
    });
  }
}

}  // namespace

std::vector<Tensor> blobs_of(const Graph& graph) {
  std::vector<Tensor> all;
  collect_blobs(graph, all);
  return all;
}

Graph parse_op(const std::string& text) {
  Graph g = parse_graph(text);
  if (g.nodes.empty() || g.nodes.back().op->infer() == nullptr) {
    throw errors::InvalidArgument("expected the text of one op");
  }
  return g;
}

}  // namespace berth::remote
