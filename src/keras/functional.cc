// Models described by what leads from inputs to outputs.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "berth/keras/models.h"
#include "keras/functional_config.h"
#include "keras/keras_node.h"
#include "keras/layer_state.h"

namespace berth::keras {

namespace {

class FunctionalBase final : public LayerBase {
 public:
  FunctionalBase(KerasTensors inputs, KerasTensors outputs,
                 const NameOptions& o, Site site)
      : LayerBase("Model", o.name, site),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {
    if (inputs_.empty() || outputs_.empty()) {
      fail(
          fmt::format("Model: has {} inputs and {} outputs; expected at "
                      "least one of each",
                      inputs_.size(), outputs_.size()));
    }
    if (o.dtype) {
      fail("Model: has a dtype of its own; expected its layers to have one");
    }
    state().num_inputs = inputs_.size();
    state().described_inputs = inputs_;
    state().described_outputs = outputs_;
    for (const KerasTensor& x : inputs_) {
      visit(*x.node(), true);
      state().input_specs.push_back({x.shape(), x.dtype(), {}});
    }
    for (const KerasTensor& y : outputs_) visit(*y.node(), false);
    state().built = true;
    state().input_names = names_of(inputs_);
    state().output_names = names_of(outputs_);
    for (const KerasTensor& y : outputs_) {
      state().output_shapes.push_back(y.shape());
    }
  }

  Config get_config() const override {
    return functional_config(*this, inputs_, order_, outputs_);
  }

  Tensors call(const Tensors& x, bool training) override {
    if (x.size() != inputs_.size()) {
      fail(fmt::format("Model: got {} inputs; expected {}", x.size(),
                       inputs_.size()));
    }
    std::map<const KerasNode*, Tensors> values;
    for (size_t i = 0; i < x.size(); ++i) {
      const KerasNode* node = inputs_[i].node().get();
      values[node] = {node->inputs.empty() ? node->layer(x[i], training)
                                           : x[i]};
    }
    for (const KerasNode* node : order_) {
      Tensors in;
      for (const KerasTensor& t : node->inputs) in.push_back(at(values, t));
      values[node] = node->layer(in, training);
    }
    Tensors out;
    for (const KerasTensor& y : outputs_) out.push_back(at(values, y));
    return out;
  }

 private:
  // Names of the layers; for one that gives several, "split", "split_1", ...
  static std::vector<std::string> names_of(const KerasTensors& list) {
    std::vector<std::string> names;
    for (const KerasTensor& t : list) {
      std::string name = t.node()->layer.name();
      for (int n = 1; std::count(names.begin(), names.end(), name) > 0; ++n) {
        name = fmt::format("{}_{}", t.node()->layer.name(), n);
      }
      names.push_back(name);
    }
    return names;
  }

  static const Tensor& at(const std::map<const KerasNode*, Tensors>& values,
                          const KerasTensor& t) {
    return values.at(t.node().get())[static_cast<size_t>(t.index())];
  }

  // Puts what `node` needs, then `node`, in order; with a stack of its own,
  // since models may be deep.
  void visit(const KerasNode& root, bool is_input) {
    if (is_input) {
      add_part(root.layer);
      seen_.insert(&root);
      return;
    }
    std::vector<std::pair<const KerasNode*, size_t>> stack;
    auto enter = [&](const KerasNode* node) {
      if (!seen_.insert(node).second) return;
      if (node->inputs.empty()) {
        fail(
            fmt::format("Model: an output needs the input \"{}\", which is "
                        "not among the model's inputs",
                        node->layer.name()));
      }
      stack.emplace_back(node, 0);
    };
    enter(&root);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->inputs.size()) {
        enter(node->inputs[next++].node().get());
        continue;
      }
      order_.push_back(node);
      add_part(node->layer);
      stack.pop_back();
    }
  }

  // A layer that is used twice is one part.
  void add_part(const Layer& layer) {
    for (const Layer& part : state().parts) {
      if (part.base() == layer.base()) return;
    }
    track(layer);
  }

  const KerasTensors inputs_, outputs_;  // keep the nodes
  std::vector<const KerasNode*> order_;
  std::set<const KerasNode*> seen_;
};

}  // namespace

Model::Model(KerasTensors inputs, KerasTensors outputs, NameOptions options,
             Site site)
    : Model(std::make_shared<FunctionalBase>(
          std::move(inputs), std::move(outputs), options, site)) {}
Model::Model(KerasTensor input, KerasTensor output, NameOptions options,
             Site site)
    : Model(KerasTensors{std::move(input)}, KerasTensors{std::move(output)},
            options, site) {}

}  // namespace berth::keras
