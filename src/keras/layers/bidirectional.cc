// Bidirectional.

#include <algorithm>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/layers/rnn.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

namespace {

class BidirectionalBase final : public RecurrentBase {
 public:
  BidirectionalBase(const RecurrentLayer& layer, BidirectionalOptions o,
                    Site site)
      : RecurrentBase("Bidirectional", o.name, site), mode_(o.merge_mode) {
    constexpr const char* kModes[] = {"concat", "sum", "mul", "ave", ""};
    if (std::find(std::begin(kModes), std::end(kModes), mode_) ==
        std::end(kModes)) {
      fail_in(state(),
              "Bidirectional: merge_mode is \"{}\"; expected concat, "
              "sum, mul, ave or \"\"",
              mode_);
    }
    RnnBase& given = rnn_of(layer, *this);
    if (o.backward_layer) {
      forward_ = &given;
      backward_ = &rnn_of(*o.backward_layer, *this);
      track(layer);
      track(*o.backward_layer);
      check_pair();
    } else {
      const bool back = given.options().go_backwards;
      forward_ = add(given.copy(name() + "/forward_" + layer.name(), back));
      backward_ = add(given.copy(name() + "/backward_" + layer.name(), !back));
    }
    if (forward_->options().return_sequences) {
      forward_->zero_masked_outputs();
      backward_->zero_masked_outputs();
    }
  }

  Tensors call(const Tensors& inputs, bool training) override {
    Tensors front{inputs[0]}, back{inputs[0]};
    size_t end = inputs.size();
    const bool masked = end > 1 && inputs[end - 1].dtype() == bool_;
    if (masked) --end;
    if (end % 2 == 0) {
      fail_in(state(),
              "Bidirectional: got {} initial states; expected as many "
              "for each direction",
              end - 1);
    }
    const size_t half = (end - 1) / 2;
    for (size_t i = 0; i < half; ++i) {
      front.push_back(inputs[1 + i]);
      back.push_back(inputs[1 + half + i]);
    }
    if (masked) {
      front.push_back(inputs.back());
      back.push_back(inputs.back());
    }
    const Tensors a = state().parts[0](front, training);
    const Tensors b = state().parts[1](back, training);
    Tensors result =
        merge(a[0], returns_sequences() ? reverse(b[0], {1}, site()) : b[0]);
    result.insert(result.end(), a.begin() + 1, a.end());
    result.insert(result.end(), b.begin() + 1, b.end());
    return result;
  }

  Tensors compute_mask(const Tensors& inputs, const Tensors& masks) override {
    const Tensors mask = forward_->compute_mask(inputs, masks);
    if (mask.empty() || !mode_.empty()) return mask;
    return {mask[0], mask[0]};
  }

  std::vector<Variable> states() const override {
    std::vector<Variable> all = forward_->states();
    for (const Variable& v : backward_->states()) all.push_back(v);
    return all;
  }
  void reset_states() override {
    forward_->reset_states();
    backward_->reset_states();
  }

 private:
  bool returns_sequences() const {
    return forward_->options().return_sequences;
  }

  RnnBase* add(std::shared_ptr<RnnBase> layer) {
    RnnBase* base = layer.get();
    track(Layer(std::move(layer)));
    return base;
  }

  void check_pair() {
    const RNNOptions &a = forward_->options(), &b = backward_->options();
    const auto same = [&](const char* what, bool x, bool y, bool want) {
      if ((x == y) == want) return;
      fail_in(state(),
              "Bidirectional: {} is {} for the layer and {} for "
              "backward_layer; expected {} values",
              what, x, y, want ? "equal" : "different");
    };
    same("go_backwards", a.go_backwards, b.go_backwards, false);
    same("stateful", a.stateful, b.stateful, true);
    same("return_sequences", a.return_sequences, b.return_sequences, true);
    same("return_state", a.return_state, b.return_state, true);
  }

  Tensors merge(const Tensor& a, const Tensor& b) const {
    if (mode_.empty()) return {a, b};
    if (mode_ == "concat") return {concat({a, b}, -1, site())};
    if (mode_ == "mul") return {math::multiply(a, b, site())};
    const Tensor sum = math::add(a, b, site());
    return {mode_ == "ave" ? sum * 0.5 : sum};
  }

  const std::string mode_;
  RnnBase* forward_ = nullptr;
  RnnBase* backward_ = nullptr;
};

struct BidirectionalArgs {
  std::optional<Layer> layer, backward_layer;
  BidirectionalOptions o;
  void fields(Fields& f) {
    f.must("layer", layer);
    // Keras has null for both outputs.
    if (!f.reading() && o.merge_mode.empty()) {
      f.put("merge_mode", nullptr);
    } else if (!f.reading() || f.get("merge_mode")) {
      f("merge_mode", o.merge_mode);
    } else {
      o.merge_mode = "";
    }
    if (f.reading() ? f.get("backward_layer").has_value()
                    : backward_layer.has_value()) {
      f("backward_layer", backward_layer);
    }
    f("name", o.name);
  }
  Layer make(Site site) const {
    BidirectionalOptions own = o;
    if (backward_layer)
      own.backward_layer = RecurrentLayer(backward_layer->base());
    return Bidirectional(RecurrentLayer(layer->base()), own, site);
  }
};

}  // namespace

Bidirectional::Bidirectional(RecurrentLayer layer, BidirectionalOptions options,
                             Site site)
    : RecurrentLayer(
          std::make_shared<BidirectionalBase>(layer, options, site)) {
  describe(*this, BidirectionalArgs{layer, options.backward_layer, options});
}

void add_bidirectional_classes(Classes& c) {
  c.layers["Bidirectional"] = &layer_of<BidirectionalArgs>;
}

}  // namespace berth::keras
