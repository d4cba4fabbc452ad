// Models described by what leads from inputs to outputs.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "berth/keras/models.h"
#include "keras/models/functional_config.h"
#include "keras/models/input_layer.h"
#include "keras/models/keras_node.h"
#include "keras/models/layer_state.h"

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
      fail_in(state(),
              "Model: has {} inputs and {} outputs; expected at "
              "least one of each",
              inputs_.size(), outputs_.size());
    }
    if (o.dtype) {
      fail("Model: has a dtype of its own; expected its layers to have one");
    }
    begin_at_inputs(site);
    state().num_inputs = inputs_.size();
    state().graph.inputs = inputs_;
    state().graph.outputs = outputs_;
    for (const KerasTensor& x : inputs_) {
      state().build.input_specs.push_back({x.shape(), x.dtype(), {}});
    }
    const UsesOfLayers uses(inputs_, outputs_);
    for (const KerasNode* node : uses.nodes()) {
      if (!node->inputs.empty()) {
        order_.push_back(node);
      } else if (!is_input(*node)) {
        fail_in(state(),
                "Model: an output needs the input \"{}\", which is "
                "not among the model's inputs",
                node->layer.name());
      }
    }
    for (const Layer& layer : uses.by_depth()) track(layer);
    state().build.done = true;
    state().input_names = names_of(inputs_);
    state().output_names = names_of(outputs_);
    for (const KerasTensor& y : outputs_) {
      state().build.output_shapes.push_back(y.shape());
    }
  }

  Config get_config() const override {
    return functional_config(*this, inputs_, order_, outputs_);
  }

  Tensors call(const Tensors& x, bool training) override {
    if (x.size() != inputs_.size()) {
      fail_in(state(), "Model: got {} inputs; expected {}", x.size(),
              inputs_.size());
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

  bool is_input(const KerasNode& node) const {
    return std::any_of(
        inputs_.begin(), inputs_.end(),
        [&](const KerasTensor& t) { return t.node().get() == &node; });
  }

  // A model that begins at the output of a layer gets an input there, and uses
  // of the layers after it that begin at that input.
  void begin_at_inputs(Site site) {
    using Place = std::pair<const KerasNode*, int>;
    std::map<Place, KerasTensor> instead;
    std::map<const KerasNode*, std::shared_ptr<KerasNode>> copies;
    const KerasTensors given = inputs_;
    for (KerasTensor& t : inputs_) {
      if (t.node()->inputs.empty()) continue;
      Shape shape = t.shape();
      if (shape.rank() == 0) {
        fail_in(state(),
                "Model: begins at the output of layer \"{}\", which is "
                "a scalar; expected a batch of values",
                t.node()->layer.name());
      }
      const int64_t batch = shape[0];
      shape.erase(0);
      KerasTensor input = described_input(std::make_shared<InputLayerBase>(
          shape, InputOptions{t.dtype()}, site, batch));
      instead.emplace(Place(t.node().get(), t.index()), input);
      t = input;
    }
    if (instead.empty()) return;
    const auto renewed = [&](const KerasTensor& t) {
      const auto found = instead.find({t.node().get(), t.index()});
      if (found != instead.end()) return found->second;
      const auto copy = copies.find(t.node().get());
      return copy == copies.end() ? t : KerasTensor(copy->second, t.index());
    };
    const UsesOfLayers uses(given, outputs_);
    for (const KerasNode* node : uses.nodes()) {
      auto copy = std::make_shared<KerasNode>(*node);
      bool other = false;
      for (KerasTensor& t : copy->inputs) {
        const KerasTensor now = renewed(t);
        other |= now.node() != t.node();
        t = now;
      }
      if (other) copies[node] = std::move(copy);
    }
    for (KerasTensor& t : outputs_) t = renewed(t);
  }

  KerasTensors inputs_, outputs_;  // keep the nodes
  std::vector<const KerasNode*> order_;
};

}  // namespace

UsesOfLayers::UsesOfLayers(const KerasTensors& inputs,
                           const KerasTensors& outputs)
    : inputs_(inputs) {
  std::set<std::pair<const KerasNode*, int>> ends;
  for (const KerasTensor& t : inputs) ends.emplace(t.node().get(), t.index());
  std::set<const KerasNode*> seen;
  // With a stack of its own, since models may be deep.
  std::vector<std::pair<const KerasNode*, size_t>> stack;
  auto enter = [&](const KerasTensor& t) {
    const KerasNode* node = t.node().get();
    if (!node->inputs.empty() && ends.contains({node, t.index()})) return;
    if (!seen.insert(node).second) return;
    met_.emplace(node->layer.base().get(), met_.size());
    stack.emplace_back(node, 0);
  };
  for (const KerasTensor& y : outputs) {
    enter(y);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->inputs.size()) {
        const size_t i = node->met.empty() ? next : node->met[next];
        ++next;
        enter(node->inputs[i]);
      } else {
        nodes_.push_back(node);
        stack.pop_back();
      }
    }
  }
}

std::vector<Layer> UsesOfLayers::as_reached() const {
  std::vector<Layer> all;
  std::set<const LayerBase*> seen;
  auto add = [&](const KerasNode& node) {
    if (seen.insert(node.layer.base().get()).second) all.push_back(node.layer);
  };
  for (const KerasTensor& t : inputs_) add(*t.node());
  for (const KerasNode* node : nodes_) add(*node);
  return all;
}

std::vector<Layer> UsesOfLayers::by_depth() const {
  // How many uses of layers are between a layer and the outputs at most, and
  // when a walk back from the outputs meets it.
  std::map<const LayerBase*, int64_t> depth;
  std::map<const KerasNode*, int64_t> of_use;
  for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
    int64_t& layer = depth[(*it)->layer.base().get()];
    layer = std::max(layer, of_use[*it]);
    for (const KerasTensor& t : (*it)->inputs) {
      int64_t& before = of_use[t.node().get()];
      before = std::max(before, layer + 1);
    }
  }
  const auto place = [&](const Layer& l) {
    const auto met = met_.find(l.base().get());
    return std::pair(
        -depth[l.base().get()],
        met == met_.end() ? -1 : static_cast<int64_t>(met->second));
  };
  std::vector<Layer> all = as_reached();
  std::stable_sort(all.begin(), all.end(), [&](const Layer& a, const Layer& b) {
    return place(a) < place(b);
  });
  return all;
}

Model::Model(KerasTensors inputs, KerasTensors outputs, NameOptions options,
             Site site)
    : Model(std::make_shared<FunctionalBase>(
          std::move(inputs), std::move(outputs), options, site)) {}
Model::Model(KerasTensor input, KerasTensor output, NameOptions options,
             Site site)
    : Model(KerasTensors{std::move(input)}, KerasTensors{std::move(output)},
            options, site) {}

}  // namespace berth::keras
