// Recurrent layers: values, states, masks, directions.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "berth/berth.h"
#include "berth/keras/recurrent_layers.h"
#include "keras/layers/layers_testing.h"
#include "keras/models/layer_state.h"

namespace berth::keras {
namespace {

using nlohmann::json;

const LSTMOptions kAllOfLstm{.return_sequences = true, .return_state = true};
const GRUOptions kAllOfGru{.return_sequences = true, .return_state = true};

template <class Options>
Options with(Options options, const std::function<void(Options&)>& change) {
  change(options);
  return options;
}

// The layers of conformance/fixtures/recurrent.py.
const std::map<std::string, std::function<Layer()>>& makers() {
  using L = LSTMOptions;
  using G = GRUOptions;
  static const auto& all = *new std::map<std::string, std::function<Layer()>>{
      {"lstm", [] { return LSTM(3); }},
      {"lstm_sequences", [] { return LSTM(3, kAllOfLstm); }},
      {"lstm_backwards",
       [] {
         return LSTM(3,
                     with<L>(kAllOfLstm, [](L& o) { o.go_backwards = true; }));
       }},
      {"lstm_masked", [] { return LSTM(3, kAllOfLstm); }},
      {"lstm_masked_last", [] { return LSTM(3); }},
      {"lstm_zero_output",
       [] {
         return LSTM(3, with<L>(kAllOfLstm,
                                [](L& o) { o.zero_output_for_mask = true; }));
       }},
      {"lstm_activations",
       [] {
         return LSTM(3, {.activation = "softsign",
                         .recurrent_activation = "hard_sigmoid",
                         .use_bias = false,
                         .return_sequences = true,
                         .return_state = true});
       }},
      {"gru", [] { return GRU(3, kAllOfGru); }},
      {"gru_masked", [] { return GRU(3, kAllOfGru); }},
      {"gru_reset_before",
       [] {
         return GRU(3, with<G>(kAllOfGru, [](G& o) { o.reset_after = false; }));
       }},
      {"gru_no_bias",
       [] { return GRU(3, {.use_bias = false, .go_backwards = true}); }},
      {"gru_activations",
       [] {
         return GRU(3, {.activation = "relu",
                        .recurrent_activation = "tanh",
                        .return_sequences = true,
                        .return_state = true});
       }},
      {"simple_rnn",
       [] {
         return SimpleRNN(3, {.return_sequences = true, .return_state = true});
       }},
      {"simple_rnn_relu", [] { return SimpleRNN(3, {.activation = "relu"}); }},
      {"stacked",
       [] {
         return RNN({LSTMCell(3), GRUCell(2)},
                    {.return_sequences = true, .return_state = true});
       }},
      {"stacked_masked", [] { return makers().at("stacked")(); }},
      {"bidirectional", [] { return Bidirectional(LSTM(3, kAllOfLstm)); }},
      {"bidirectional_last", [] { return Bidirectional(LSTM(3)); }},
      {"bidirectional_sum",
       [] {
         return Bidirectional(LSTM(3, {.return_sequences = true}),
                              {.merge_mode = "sum"});
       }},
      {"bidirectional_ave",
       [] { return Bidirectional(LSTM(3), {.merge_mode = "ave"}); }},
      {"bidirectional_mul",
       [] {
         return Bidirectional(LSTM(3, {.return_sequences = true}),
                              {.merge_mode = "mul"});
       }},
      {"bidirectional_both",
       [] {
         return Bidirectional(LSTM(3, {.return_sequences = true}),
                              {.merge_mode = ""});
       }},
      {"time_distributed",
       [] { return TimeDistributed(Dense(3, {.activation = "tanh"})); }},
  };
  return all;
}

const json& recurrent_fixtures() {
  static const auto& all = *[] {
    std::ifstream file(BERTH_SOURCE_DIR "/conformance/fixtures/recurrent.json");
    return new json(json::parse(file).at("cases"));
  }();
  return all;
}

Tensor fixture_tensor(const json& t) {
  return constant(t.at("data").get<Floats>(),
                  Shape(t.at("shape").get<std::vector<int64_t>>()));
}

// The sum over all outputs of output[i] cos(i).
Tensor score(const Tensors& outputs) {
  Tensor sum;
  for (const Tensor& y : outputs) {
    Floats factors;
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      factors.push_back(static_cast<float>(std::cos(static_cast<double>(i))));
    }
    const Tensor own = math::reduce_sum(y * constant(factors, y.shape()));
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

// A layer with the weights of a case, and its inputs.
struct KerasCase {
  explicit KerasCase(const std::string& name, const Layer& made)
      : layer(made), wanted(recurrent_fixtures().at(name)) {
    for (const json& t : wanted.at("inputs")) {
      inputs.push_back(fixture_tensor(t));
    }
    if (!wanted.at("mask").is_null()) {
      std::vector<int> bits;
      for (const json& row : wanted.at("mask")) {
        for (const bool bit : row) bits.push_back(bit);
      }
      inputs.push_back(
          math::cast(constant(bits, {3, int64_t(bits.size()) / 3}), bool_));
    }
    layer(inputs);
    Tensors weights;
    for (const json& t : wanted.at("weights")) {
      weights.push_back(fixture_tensor(t));
    }
    layer.set_weights(weights);
  }

  // {outputs..., gradients by x and the weights...}
  Tensors compute(const Tensors& in) const {
    GradientTape tape;
    tape.watch(in[0]);
    Tensors results = layer(in, true);
    std::vector<Source> sources{in[0]};
    for (const Variable& v : layer.trainable_variables()) sources.push_back(v);
    for (const Tensor& g : tape.gradient(score(results), sources)) {
      results.push_back(g);
    }
    return results;
  }

  void expect(const Tensors& got) const {
    std::vector<json> want(wanted.at("outputs").begin(),
                           wanted.at("outputs").end());
    for (const json& t : wanted.at("gradients")) want.push_back(t);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE("result " + std::to_string(i));
      EXPECT_EQ(got[i].shape(), fixture_tensor(want[i]).shape());
      expect_near(got[i], want[i].at("data").get<Floats>(), 2e-5);
    }
  }

  const Layer layer;
  const json& wanted;
  Tensors inputs;
};

// Every layer of the fixtures, eagerly.
TEST(Recurrent, HasTheValuesAndGradientsOfKeras) {
  for (const auto& [name, make] : makers()) {
    SCOPED_TRACE(name);
    const KerasCase c(name, make());
    c.expect(c.compute(c.inputs));
  }
}

Tensors traced(const KerasCase& c, const FunctionOptions& options) {
  auto f = function([&](const Tensors& in) { return c.compute(in); }, options);
  return f(c.inputs);
}

TEST(Recurrent, HasThemInATrace) {
  for (const auto& [name, make] : makers()) {
    SCOPED_TRACE(name);
    const KerasCase c(name, make());
    c.expect(traced(c, {}));
  }
}

// The batch is not known when the step is traced.
TEST(Recurrent, TakesAnyBatch) {
  for (const char* name : {"lstm_masked", "gru_masked", "stacked_masked"}) {
    SCOPED_TRACE(name);
    const KerasCase c(name, makers().at(name)());
    FunctionOptions options;
    for (const Tensor& t : c.inputs) {
      Shape shape = t.shape();
      shape[0] = kUnknownDim;
      options.input_signature.push_back({shape, t.dtype(), {}});
    }
    const auto f =
        function([&](const Tensors& in) { return c.layer(in); }, options);
    const Tensors got = f(c.inputs);
    ASSERT_EQ(got.size(), c.wanted.at("outputs").size());
    for (size_t i = 0; i < got.size(); ++i) {
      expect_near(got[i], c.wanted.at("outputs")[i].at("data").get<Floats>(),
                  2e-5);
    }
  }
}

// Outputs and gradients of a long masked sequence.
Tensors train_on(const Layer& layer, const Tensor& x, const Tensor& mask) {
  GradientTape tape;
  tape.watch(x);
  Tensors results = layer(Tensors{x, mask}, true);
  Tensor loss;
  for (const Tensor& y : results) {
    const Tensor own = math::reduce_sum(y * y);
    loss = loss.defined() ? loss + own : own;
  }
  std::vector<Source> sources{x};
  for (const Variable& v : layer.trainable_variables()) sources.push_back(v);
  for (const Tensor& g : tape.gradient(loss, sources)) results.push_back(g);
  return results;
}

// A trace makes a loop of them.
TEST(Recurrent, LoopsEqualTheirSteps) {
  const int64_t steps = 70;
  const Tensor x = random::normal({2, steps, 3}, {.seed = 1});
  const Tensor mask = random::uniform({2, steps}, {.seed = 2}) > 0.3;
  const Layer layers[] = {
      GRU(3, kAllOfGru),
      GRU(3),
      GRU(3, {.return_sequences = true, .unroll = true}),
      SimpleRNN(2, {.return_sequences = true, .zero_output_for_mask = true}),
      LSTM(2, {.activation = "softsign", .return_sequences = true}),
      RNN({LSTMCell(2), GRUCell(3)}, {.return_sequences = true})};
  for (const Layer& layer : layers) {
    SCOPED_TRACE(layer.name());
    const Tensors want = train_on(layer, x, mask);
    const auto f = function([&](const Tensor& x, const Tensor& mask) {
      return train_on(layer, x, mask);
    });
    const Tensors got = f(x, mask);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      expect_near(got[i], want[i].to_vector<float>(), 1e-3);
    }
  }
}

TEST(Recurrent, StatefulLayersGoOnWhereTheyWere) {
  const Tensor x = random::normal({2, 6, 3}, {.seed = 3});
  const Tensor first = x[{slice(), slice(0, 4)}];
  const Tensor rest = x[{slice(), slice(4, 6)}];
  const auto whole = LSTM(4);
  const auto kept = LSTM(4, {.stateful = true});
  const Tensor want = whole(x);
  kept(first);
  EXPECT_EQ(kept.states().size(), 2u);
  Tensors values;
  for (const Variable& v : kept.states()) values.push_back(zeros(v.shape()));
  for (const Tensor& t : whole.get_weights()) values.push_back(t);
  kept.set_weights(values);
  for (int turn = 0; turn < 2; ++turn) {
    kept.reset_states();
    kept(first);
    expect_near(kept(rest), want.to_vector<float>(), 1e-5);
  }
  EXPECT_EQ(kept.trainable_variables().size(), 3u);
  // In a trace, and all at once.
  reset_states(Sequential({kept}));
  const auto f = function([&](const Tensor& x) { return kept(x); });
  f(first);
  expect_near(f(rest), want.to_vector<float>(), 1e-5);
  EXPECT_THROW(kept(ones({3, 4, 3})), errors::InvalidArgument);
  EXPECT_THROW(LSTM(4).reset_states(), errors::FailedPrecondition);
}

TEST(Masks, TravelFromTheEmbeddingToTheLayer) {
  const auto embedding = Embedding(5, 3, {.mask_zero = true});
  const auto lstm = LSTM(2);
  const Tensor ids = constant({{1, 2, 0, 0}, {3, 0, 4, 1}});
  const Tensor mask = math::not_equal(ids, zeros_like(ids));
  const Dense dense(3);
  const Sequential model({embedding, Dropout(0.5), dense, lstm});
  const Tensor got = model(ids);
  const Tensor x = embedding(ids);
  EXPECT_EQ(got.to_vector<float>(),
            lstm(Tensors{dense(x), mask})[0].to_vector<float>());
  EXPECT_NE(got.to_vector<float>(), lstm(dense(x)).to_vector<float>());
  // As a functional model, and outside of models.
  const KerasTensor in = Input({4}, {.dtype = int32});
  const Model functional(in, lstm(embedding(in)));
  const Floats want = lstm(Tensors{embedding(ids), mask})[0].to_vector<float>();
  EXPECT_EQ(functional(ids).to_vector<float>(), want);
  const MaskScope masks;
  const Tensor y = embedding(ids);
  EXPECT_EQ(lstm(y).to_vector<float>(), want);
  EXPECT_EQ(mask_of(y).to_vector<bool>(), mask.to_vector<bool>());
  EXPECT_FALSE(mask_of(Flatten()(y)).defined());
}

TEST(Masks, OfSumsAreThoseOfEither) {
  const MaskScope masks;
  const Tensor a = Masking()(constant(Floats{1, 0, 0, 2}, {1, 4, 1}));
  const Tensor b = Masking()(constant(Floats{0, 0, 3, 4}, {1, 4, 1}));
  const Tensor sum = Add()(Tensors{a, b})[0];
  EXPECT_EQ(mask_of(sum).to_vector<bool>(),
            (std::vector<bool>{true, false, true, true}));
  EXPECT_FALSE(mask_of(Add()(Tensors{a, b + 1.0})[0]).defined());
}

TEST(Masking, ZeroesStepsThatAreTheValueThroughout) {
  const auto layer = Masking(2);
  const MaskScope masks;
  const Tensor y = layer(constant(Floats{2, 2, 1, 2, 3, 3}, {1, 3, 2}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(mask_of(y).to_vector<bool>(),
            (std::vector<bool>{false, true, true}));
}

// With kernels that add, an output counts the steps so far.
TEST(Recurrent, DropoutLeavesOutTheSameElementsAtEachStep) {
  for (const bool of_states : {false, true}) {
    const auto layer = SimpleRNN(
        40, {.activation = "linear",
             .kernel_initializer = Initializer(
                 [](const Shape& s, DType) { return eye(s[0], s[1]); }),
             .recurrent_initializer =
                 Initializer([](const Shape& s, DType) { return eye(s[0]); }),
             .dropout = of_states ? 0 : 0.5,
             .recurrent_dropout = of_states ? 0.5 : 0,
             .return_sequences = true});
    const Tensor x = ones({1, 3, 40});
    const Floats y = layer(x, true).to_vector<float>();
    int dropped = 0;
    for (size_t i = 0; i < 40; ++i) {
      const bool gone = of_states ? y[40 + i] == 1 : y[i] == 0;
      dropped += gone;
      const Floats want = of_states
                              ? (gone ? Floats{1, 1, 1} : Floats{1, 3, 7})
                              : (gone ? Floats{0, 0, 0} : Floats{2, 4, 6});
      for (size_t t = 0; t < 3; ++t) EXPECT_EQ(y[40 * t + i], want[t]);
    }
    EXPECT_GT(dropped, 5);
    EXPECT_LT(dropped, 35);
    EXPECT_EQ(layer(x).to_vector<float>()[80], 3);
  }
}

// out = x + 2 h, and h = h + 1 with a state of another width than the output.
class CountingCell : public RNNCellBase {
 public:
  CountingCell() : RNNCellBase("counting") {}
  std::vector<int64_t> state_size() const override { return {1}; }
  int64_t output_size() const override { return 2; }
  Tensors call(const Tensors& in, bool) override {
    return {in[0] + in[1] * 2.0, in[1] + 1.0};
  }
};

TEST(RNN, RunsCellsOfYourOwn) {
  const RNN layer(make_layer<CountingCell>(),
                  {.return_sequences = true, .return_state = true});
  const Tensors y = layer(Tensors{zeros({1, 3, 2})});
  EXPECT_EQ(y[0].to_vector<float>(), (Floats{0, 0, 2, 2, 4, 4}));
  EXPECT_EQ(y[1].to_vector<float>(), (Floats{3}));
  EXPECT_THROW(RNN(Dense(2)), errors::InvalidArgument);
  EXPECT_THROW(Bidirectional{layer}, errors::InvalidArgument);
}

TEST(Recurrent, ErrorsSayWhatWasExpected) {
  const auto lstm = LSTM(2);
  const Tensor x = ones({2, 3, 4});
  EXPECT_THROW(lstm(ones({2, 3})), errors::InvalidArgument);
  EXPECT_THROW(lstm(Tensors{x, ones({2, 2})}), errors::InvalidArgument);
  EXPECT_THROW(lstm(Tensors{x, ones({2, 3}), ones({2, 3})}),
               errors::InvalidArgument);
  EXPECT_THROW(lstm(Tensors{x, math::cast(ones({2, 4}), bool_)}),
               errors::InvalidArgument);
  EXPECT_THROW(LSTM(0), errors::InvalidArgument);
  EXPECT_THROW(LSTM(2, {.dropout = 1}), errors::InvalidArgument);
  EXPECT_THROW(GRU(2, {.activation = "no"}), errors::InvalidArgument);
  EXPECT_THROW(Bidirectional(LSTM(2), {.merge_mode = "max"}),
               errors::InvalidArgument);
  EXPECT_THROW(Bidirectional(LSTM(2), {.backward_layer = LSTM(2)}),
               errors::InvalidArgument);
  EXPECT_THROW(TimeDistributed(Dense(2))(ones({2, 3})),
               errors::InvalidArgument);
}

TEST(Recurrent, EmptySequencesLeaveTheStates) {
  for (const Layer& layer :
       {Layer(LSTM(2, kAllOfLstm)), Layer(GRU(2, kAllOfGru))}) {
    layer(Tensors{ones({3, 1, 4})});
    const Tensors y = layer(Tensors{ones({3, 0, 4})});
    EXPECT_EQ(y[0].shape(), (Shape{3, 0, 2}));
    EXPECT_EQ(y[1].to_vector<float>(), Floats(6, 0.f));
  }
}

TEST(Recurrent, KernelsBeginOrthogonal) {
  for (const Shape& shape : {Shape{6, 24}, Shape{9, 9}, Shape{7, 3}}) {
    const Tensor q = initializers::Orthogonal()(shape);
    const bool wide = shape[0] < shape[1];
    const Tensor unit =
        matmul(q, q, {.transpose_a = !wide, .transpose_b = wide});
    expect_near(unit, eye(unit.shape()[0]).to_vector<float>(), 1e-5);
  }
}

TEST(Recurrent, LearnsToRememberTheFirstStep) {
  random::set_seed(5);
  const Tensor x = random::uniform({64, 5, 1}, {.minval = -1, .maxval = 1});
  const Tensor y = reshape(x[{slice(), 0}], {64, 1});
  for (const Layer& layer :
       {Layer(LSTM(8)), Layer(GRU(8)), Layer(Bidirectional(SimpleRNN(4)))}) {
    Sequential model({layer, Dense(1)});
    model.compile({.optimizer = optimizers::Adam(0.05), .loss = "mse"});
    model.fit(x, y, {.epochs = 20, .batch_size = 32, .verbose = 0});
    const Tensor error = model(x) - y;
    EXPECT_LT(math::reduce_mean(error * error).item<float>(), 0.05)
        << layer.name();
  }
}

// The steps as ops say the same, where they may be differentiated twice.
TEST(Recurrent, TheOpOfAllStepsEqualsThem) {
  const int64_t n = 5, units = 37;
  const auto layer = LSTM(units, kAllOfLstm);
  const RNN steps(LSTMCell(units),
                  {.return_sequences = true, .return_state = true});
  const Tensor x = random::normal({n, 4, 3}, {.seed = 1});
  const Tensor mask = random::uniform({n, 4}, {.seed = 2}) > 0.3;
  layer(Tensors{x});
  steps(Tensors{x});
  steps.set_weights(layer.get_weights());
  // A cell within a stack has no op.
  const RNN stacked(std::vector<Layer>{steps.base()->state().parts[0]},
                    {.return_sequences = true, .return_state = true});
  const Tensors got = train_on(layer, x, mask);
  for (const Layer& other : {Layer(steps), Layer(stacked)}) {
    const Tensors want = train_on(other, x, mask);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      expect_near(got[i], want[i].to_vector<float>(), 2e-4);
    }
  }
}

TEST(Recurrent, ConfigsMakeTheSameLayers) {
  for (const auto& [name, make] : makers()) {
    SCOPED_TRACE(name);
    const KerasCase c(name, make());
    const Layer twin = c.layer.from_config(c.layer.get_config());
    EXPECT_EQ(twin.get_config().str(), c.layer.get_config().str());
    twin(c.inputs);
    twin.set_weights(c.layer.get_weights());
    EXPECT_EQ(twin(c.inputs)[0].to_vector<float>(),
              c.layer(c.inputs)[0].to_vector<float>());
  }
}

}  // namespace
}  // namespace berth::keras
