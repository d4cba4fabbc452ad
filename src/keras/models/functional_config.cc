// Writes and reads a functional model.

#include "keras/models/functional_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/models.h"
#include "keras/config/classes.h"
#include "keras/models/input_layer.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

namespace {

using Nodes = std::vector<const KerasNode*>;

// The arguments of attention, in their order.
constexpr const char* kAttention[] = {"query", "value", "key",
                                      "attention_mask"};

int64_t first_end(const Layer& layer) {
  return layer.base()->state().type == "Model" ? 1 : 0;
}

// The name of each layer in the config, and which of its uses a node is.
struct Use {
  std::string layer;
  int64_t index = 0;
};

class FunctionalWriter {
 public:
  FunctionalWriter(const LayerBase& model, const Nodes& inputs,
                   const Nodes& order)
      : model_(model) {
    for (const KerasNode* node : inputs) add(*node);
    for (const KerasNode* node : order) add(*node);
    // Uses are numbered as they were made.
    for (auto& [layer, nodes] : uses_) {
      std::map<const KerasNode*, size_t> made;
      for (const auto& node : layer->state().graph.nodes) {
        made.emplace(node.lock().get(), made.size());
      }
      std::stable_sort(nodes.begin(), nodes.end(),
                       [&](auto* a, auto* b) { return made[a] < made[b]; });
      for (size_t i = 0; i < nodes.size(); ++i) {
        use_of_[nodes[i]] = {layer->name(), static_cast<int64_t>(i)};
      }
    }
  }

  Config layers() const {
    std::vector<Config> list;
    for (const Layer& layer : model_.state().parts) {
      const Nodes& nodes = uses_.at(layer.base().get());
      Config c = layers::serialize(layer);
      c.set("name", layer.name());
      if (first_end(layer) == 1) {  // as Keras has it; see ends_from_zero()
        Config none;
        none.set("input_shape", nullptr);
        c.set("build_config", none);
      }
      std::vector<Config> inbound;
      for (const KerasNode* node : nodes) {
        if (!node->inputs.empty()) inbound.push_back(call_of(*node));
      }
      list.push_back(c.set("inbound_nodes", inbound));
    }
    return list;
  }

  // One [layer, use, output], or a list of them.
  Config history(const KerasTensors& tensors) const {
    std::vector<Config> list;
    for (const KerasTensor& t : tensors) list.push_back(end(t));
    return list.size() == 1 ? list[0] : Config(list);
  }

 private:
  void add(const KerasNode& node) {
    Nodes& nodes = uses_[node.layer.base().get()];
    nodes.push_back(&node);
    if (nodes.size() == 1 && !names_.insert(node.layer.name()).second) {
      throw errors::FailedPrecondition(fmt::format(
          "model \"{}\" has two layers with the name \"{}\"; a config tells "
          "layers apart by their names: give one another {{.name = ...}}",
          model_.name(), node.layer.name()));
    }
  }

  // At the ends of a model Keras counts uses of a functional one from 1.
  Config end(const KerasTensor& t) const {
    const Use& use = use_of_.at(t.node().get());
    return std::vector<Config>{
        use.layer, use.index + first_end(t.node()->layer), t.index()};
  }
  Config history(const KerasTensor& t) const {
    const Use& use = use_of_.at(t.node().get());
    return std::vector<Config>{use.layer, use.index, t.index()};
  }

  Config tensor(const KerasTensor& t) const {
    Config fields;
    Fields f(&fields);
    Shape shape = t.shape();
    DType dtype = t.dtype();
    f("shape", shape);
    f("dtype", dtype);
    fields.set("keras_history", history(t));
    return Config({{"class_name", "__keras_tensor__"}, {"config", fields}});
  }

  Config call_of(const KerasNode& node) const {
    std::vector<Config> list;
    for (const KerasTensor& t : node.inputs) list.push_back(tensor(t));
    const std::string& type = node.layer.base()->state().type;
    // Keras calls a layer with one list of several inputs, but attention with
    // one argument each, and what has states with these by their name.
    const bool apart = type == "MultiHeadAttention";
    const bool states = type == "LSTM" || type == "GRU" ||
                        type == "SimpleRNN" || type == "RNN" ||
                        type == "Bidirectional";
    Config named;
    if (apart && !node.met.empty()) {
      for (size_t i = 1; i < list.size(); ++i) {
        named.set(kAttention[i], list[i]);
      }
      list.resize(1);
    } else if (states && list.size() > 1) {
      named.set("initial_state",
                std::vector<Config>(list.begin() + 1, list.end()));
      list.resize(1);
    }
    const Config args = list.size() == 1 || apart
                            ? Config(list)
                            : Config(std::vector<Config>{list});
    return Config({{"args", args}, {"kwargs", named}});
  }

  const LayerBase& model_;
  std::map<LayerBase*, Nodes> uses_;
  std::map<const KerasNode*, Use> use_of_;
  std::set<std::string> names_;
};

}  // namespace

Config functional_config(const LayerBase& model, const KerasTensors& inputs,
                         const std::vector<const KerasNode*>& order,
                         const KerasTensors& outputs) {
  Nodes first;
  for (const KerasTensor& t : inputs) first.push_back(t.node().get());
  const FunctionalWriter writer(model, first, order);
  return Config({{"layers", writer.layers()},
                 {"input_layers", writer.history(inputs)},
                 {"output_layers", writer.history(outputs)}});
}

namespace {

constexpr int kMaxArgumentDepth = 16;

// Reads what FunctionalWriter, or Keras, wrote.
class FunctionalReader {
 public:
  FunctionalReader(const Config& model, Site site) : site_(site) {
    for (const Config& c : model.at("layers").as_list()) add_layer(c);
    // A use waits until what it needs is there, as layers may stand anywhere.
    for (bool more = true; more;) {
      more = false;
      bool left = false;
      for (Entry& e : entries_) {
        while (e.next < e.calls.size() && try_call(e)) more = true;
        left |= e.next < e.calls.size();
      }
      if (!left) return;
    }
    for (const Entry& e : entries_) {
      if (e.next < e.calls.size()) {
        fail(
            fmt::format("layer \"{}\" waits for itself or for what is not "
                        "there",
                        e.name));
      }
    }
  }

  KerasTensors tensors(const Config& history) const {
    KerasTensors list;
    for (const Config& h : histories(history)) {
      const KerasTensor* t = find(h, true);
      if (!t) fail(fmt::format("there is no tensor {}", h.str()));
      list.push_back(*t);
    }
    return list;
  }

 private:
  struct Entry {
    std::string name;
    std::optional<Layer> layer;
    std::vector<Config> calls;
    size_t next = 0;
    std::vector<KerasTensors> outputs;  // per use
    bool ends_from_one = true;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw errors::InvalidArgument(
        fmt::format("the config of a functional model{}: {}",
                    where_text(nullptr, site_), what));
  }

  void add_layer(const Config& c) {
    Entry e;
    const NamedConfig named = named_config("layer", c, site_);
    e.name = c.contains("name") ? c.at("name").as_string()
                                : named.config.at("name").as_string();
    for (const Entry& other : entries_) {
      if (other.name == e.name) {
        fail(fmt::format("two layers have the name \"{}\"", e.name));
      }
    }
    e.ends_from_one = !ends_from_zero(c);
    if (c.contains("inbound_nodes")) e.calls = c.at("inbound_nodes").as_list();
    if (named.class_name == "InputLayer") {
      e.outputs.push_back(
          {described_input(layers::deserialize(c, site_).base())});
    } else {
      e.layer = layers::deserialize(c, site_);
    }
    entries_.push_back(std::move(e));
  }

  // Berth's older files counted uses at the ends from 0, and said of models
  // what they were built for; Keras' .h5 have no modules.
  static bool ends_from_zero(const Config& c) {
    if (!c.contains("module")) return false;
    if (!c.contains("build_config")) return true;
    const Config build = c.at("build_config");
    return build.kind() == Config::Kind::kObject &&
           build.contains("input_dtype");
  }

  // Runs the next use of a layer, if all that it needs is there.
  bool try_call(Entry& e) {
    const Config& call = e.calls[e.next];
    if (!call.contains("args")) {
      fail(
          fmt::format("a call of \"{}\" is {}; expected {{\"args\": [...], "
                      "\"kwargs\": {{...}}}}",
                      e.name, call.str().substr(0, 60)));
    }
    KerasTensors x;
    if (!arguments(e, call.at("args"), 0, &x)) return false;
    std::map<std::string, std::vector<size_t>> places;  // of what has a name
    const size_t without = x.size();
    if (call.contains("kwargs")) {
      const Config named = call.at("kwargs");
      std::vector<std::string> names = named.names();
      const auto place = [](const std::string& name) {
        return std::find(std::begin(kAttention), std::end(kAttention), name) -
               std::begin(kAttention);
      };
      std::stable_sort(names.begin(), names.end(),
                       [&](const std::string& a, const std::string& b) {
                         return place(a) < place(b);
                       });
      for (const std::string& name : names) {
        const bool option =
            name == "training" && named.at(name).kind() == Config::Kind::kBool;
        const size_t from = x.size();
        if (!option && !arguments(e, named.at(name), 0, &x)) return false;
        for (size_t i = from; i < x.size(); ++i) places[name].push_back(i);
      }
    }
    if (!e.layer || x.empty()) {
      fail(fmt::format("a call of \"{}\" has no inputs", e.name));
    }
    e.outputs.push_back(e.layer->outputs_of(x));
    std::vector<size_t> met(without);
    std::iota(met.begin(), met.end(), 0);
    for (const auto& [name, all] : places) {
      met.insert(met.end(), all.begin(), all.end());
    }
    if (!std::is_sorted(met.begin(), met.end())) {
      e.outputs.back().at(0).node()->met = std::move(met);
    }
    ++e.next;
    return true;
  }

  // Adds the tensors of an argument; false: one is not there yet.
  bool arguments(const Entry& e, const Config& c, int depth,
                 KerasTensors* x) const {
    if (c.kind() == Config::Kind::kNull || c == Config(false)) return true;
    if (c.kind() == Config::Kind::kList && depth < kMaxArgumentDepth) {
      for (const Config& part : c.as_list()) {
        if (!arguments(e, part, depth + 1, x)) return false;
      }
      return true;
    }
    const bool tensor = c.contains("class_name") && c.contains("config") &&
                        c.at("class_name") == Config("__keras_tensor__");
    if (!tensor) {
      fail(
          fmt::format("an argument of \"{}\" is {}; expected a tensor of the "
                      "model",
                      e.name, c.str().substr(0, 60)));
    }
    const KerasTensor* t = find(c.at("config").at("keras_history"));
    if (t) x->push_back(*t);
    return t != nullptr;
  }

  static bool is_history(const Config& c) {
    const std::vector<Config> list = c.as_list();
    return list.size() == 3 && list[0].kind() == Config::Kind::kString;
  }
  static std::vector<Config> histories(const Config& c) {
    return is_history(c) ? std::vector<Config>{c} : c.as_list();
  }

  // [layer, use, output]; null while it is not there.
  const KerasTensor* find(const Config& history, bool end = false) const {
    if (history.kind() != Config::Kind::kList || !is_history(history)) {
      fail(fmt::format("{} is no [layer, use, output]",
                       history.str().substr(0, 60)));
    }
    const std::vector<Config> list = history.as_list();
    const std::string layer = list[0].as_string();
    auto use = static_cast<uint64_t>(list[1].as_int());
    const auto output = static_cast<uint64_t>(list[2].as_int());
    for (const Entry& e : entries_) {
      if (e.name != layer) continue;
      if (end && use > 0 && e.ends_from_one && e.layer) {
        use -= static_cast<uint64_t>(first_end(*e.layer));
      }
      if (use >= e.outputs.size()) return nullptr;
      const KerasTensors& all = e.outputs[use];
      return output < all.size() ? &all[output] : nullptr;
    }
    return nullptr;
  }

  const Site site_;
  std::vector<Entry> entries_;
};

struct FunctionalArgs {
  std::optional<Model> model;
  void fields(Fields& f) {
    Config config;
    for (const char* name : {"layers", "input_layers", "output_layers"}) {
      std::optional<Config> c = f.get(name);
      if (!c) {
        f.fail(name, nullptr, "the layers of a model, its inputs and outputs");
      }
      config.set(name, *c);
    }
    NameOptions o;
    f("name", o.name);
    const FunctionalReader reader(config, f.site());
    model.emplace(reader.tensors(config.at("input_layers")),
                  reader.tensors(config.at("output_layers")), o, f.site());
  }
  Layer make(Site) const { return *model; }
};

}  // namespace

void add_functional_classes(Classes& c) {
  c.layers["Functional"] = &layer_of<FunctionalArgs>;
  c.layers["Model"] = &layer_of<FunctionalArgs>;
}

}  // namespace berth::keras
