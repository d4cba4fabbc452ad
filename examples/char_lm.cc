// char_lm: trains a small transformer to continue a text, letter by letter.
//
//   char_lm --text FILE
//   char_lm --text FILE --steps 200 --sample 200 --prompt "ROMEO:"
//   char_lm --text FILE --checkpoint DIR --every 100
//                                            killed, and started again with
//                                            --resume as well, it goes on
//   char_lm --text FILE --save FILE.safetensors
//   char_lm --text FILE --stages 2 --parts 2
//                                            on four devices: a pipeline of two
//                                            stages, each of which divides its
//                                            layers over two devices
//
// The last tenth of the text is kept back; the validation loss is the mean
// over all of it, in nats per character.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backup.h"
#include "berth/berth.h"
#include "cli/whole_number.h"
#include "example.h"

namespace {

using namespace berth;

struct Options {
  std::string text, prompt = "\n";
  int64_t context = 64, width = 128, layers = 4, heads = 4;
  int64_t batch_size = 32, steps = 3000, sample = 300;
  int64_t seed = 0;
  int stages = 1, parts = 1, micro_batches = 4;
  double rate = 1e-3, temperature = 0.8, dropout = 0.0;
  bool json = false;
  std::string save;
  example::Backup backup;
};

// The characters of a text, numbered in the order of their codes.
struct Alphabet {
  explicit Alphabet(const std::string& text) : letters(text) {
    std::sort(letters.begin(), letters.end());
    letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
  }
  // [text.size()], int32. Throws for a character that is not in it.
  Tensor encode(const std::string& text) const {
    std::vector<int32_t> ids;
    for (const char c : text) {
      const size_t at = letters.find(c);
      if (at == std::string::npos) {
        throw errors::InvalidArgument(fmt::format(
            "character {:?} is not in the text that is learnt; expected one "
            "of {:?}",
            c, letters));
      }
      ids.push_back(static_cast<int32_t>(at));
    }
    const Shape shape{static_cast<int64_t>(ids.size())};
    return constant(ids, shape);
  }
  int64_t size() const { return static_cast<int64_t>(letters.size()); }

  std::string letters;
};

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.size() < 1000) {
    throw errors::NotFound(
        fmt::format("{}: {}; expected a text of at least 1,000 characters",
                    path, file ? "the text is too short" : "cannot read it"));
  }
  return text;
}

// Adds to each position of [n, s, d] a learnt vector of its own.
class Positions : public keras::LayerBase {
 public:
  Positions() : LayerBase("positions") {}
  void build(const std::vector<Shape>& in) override {
    table_ = add_weight("table", {in[0][1], in[0][2]},
                        keras::initializers::RandomNormal({.stddev = 0.02}));
  }
  Tensors call(const Tensors& x, bool) override {
    return {x[0] + table_.value()};
  }

 private:
  Variable table_;
};

keras::Model make_model(const Options& o, int64_t letters) {
  using namespace keras;
  const KerasTensor ids = Input({o.context}, {.dtype = int32});
  KerasTensor x = make_layer<Positions>()(
      Embedding(letters, o.width, {.name = "letters"})(ids));
  for (int64_t i = 0; i < o.layers; ++i) {
    const KerasTensor a =
        MultiHeadAttention(o.heads, o.width / o.heads,
                           {.dropout = o.dropout,
                            .use_causal_mask = true,
                            .name = fmt::format("attention_{}", i)})(
            LayerNormalization({.epsilon = 1e-5})(x));
    x = Add()({x, Dropout(o.dropout)(a)});
    const KerasTensor wide =
        Dense(4 * o.width,
              {.activation = "gelu_tanh", .name = fmt::format("up_{}", i)})(
            LayerNormalization({.epsilon = 1e-5})(x));
    const Dense down(o.width, {.name = fmt::format("down_{}", i)});
    x = Add()({x, Dropout(o.dropout)(down(wide))});
  }
  const Dense next(letters, {.name = "next"});
  return Model(ids, next(LayerNormalization({.epsilon = 1e-5})(x)));
}

// Attention by heads, the layers after it by columns and rows, letters by
// letters where these can be divided.
distribute::LayoutMap layouts_of(const Options& o, int64_t letters,
                                 std::vector<std::string> devices) {
  distribute::LayoutMap map(distribute::Mesh(
      {{"stage", o.stages}, {"part", o.parts}}, std::move(devices)));
  map["attention_.*/(query|key|value)/kernel"] = {"", "part", ""};
  map["attention_.*/(query|key|value)/bias"] = {"part", ""};
  map["attention_.*/attention_output/kernel"] = {"part", "", ""};
  map["up_.*/kernel"] = {"", "part"};
  map["up_.*/bias"] = {"part"};
  map["down_.*/kernel"] = {"part", ""};
  if (letters % o.parts == 0) {
    map["letters/embeddings"] = {"part", ""};
    map["next/kernel"] = {"", "part"};
    map["next/bias"] = {"part"};
  }
  return map;
}

// The first devices of the kind that there are enough of: GPUs, else sets of
// the cores.
std::vector<std::string> devices_for(int count) {
  std::vector<std::string> names;
  for (const char* kind : {"GPU", "CPU"}) {
    names.clear();
    for (const auto& d : config::list_logical_devices(kind)) {
      names.push_back(d.name);
    }
    if (static_cast<int>(names.size()) >= count) break;
  }
  if (static_cast<int>(names.size()) < count) {
    throw errors::InvalidArgument(fmt::format(
        "--stages and --parts ask for {} devices, and there are {}; expected "
        "as "
        "many: BERTH_DEVICES=CPUx{} divides the cores, BERTH_SIM=GPUx{} "
        "simulates cards",
        count, names.size(), count, count));
  }
  names.resize(static_cast<size_t>(count));
  return names;
}

// The strategy that the options ask for.
distribute::Strategy strategy_of(const Options& o, int64_t letters) {
  if (o.stages * o.parts == 1) return distribute::get_strategy();
  const auto map = layouts_of(o, letters, devices_for(o.stages * o.parts));
  if (o.stages == 1) {
    return distribute::ModelParallel(map, {.batch_dim_name = "stage"});
  }
  return distribute::PipelineStrategy(map, "stage",
                                      {.micro_batches = o.micro_batches});
}

// Pieces of `context` characters, each with its successors: neighbours begin
// `shift` characters apart.
data::Dataset pieces(const Tensor& ids, int64_t context, int64_t shift) {
  const int64_t n = (ids.shape()[0] - context - 1) / shift + 1;
  return data::Dataset::range(n).map([=](const Tensors& i) -> Tensors {
    const int64_t at = i[0].item<int64_t>() * shift;
    return {ids[{slice(at, at + context)}],
            ids[{slice(at + 1, at + context + 1)}]};
  });
}

// Returns `length` characters that the model puts after `prompt`.
std::string sample(const keras::Model& model, const Alphabet& alphabet,
                   const Options& o) {
  auto next = function(
      [&](const Tensor& window, const Tensor& last) {
        const Tensor logits = model(window, false);
        const Tensor at = gather(logits, last, 1);
        return random::categorical(
            reshape(at, {1, alphabet.size()}) / o.temperature, 1);
      },
      {.name = "sample"});
  std::string text = o.prompt;
  for (int64_t i = 0; i < o.sample; ++i) {
    const auto kept = static_cast<size_t>(o.context);
    std::string window =
        text.size() > kept ? text.substr(text.size() - kept) : text;
    const auto last = static_cast<int32_t>(window.size()) - 1;
    window.resize(kept, alphabet.letters[0]);  // after what is looked at
    const Tensor id = next(reshape(alphabet.encode(window), {1, o.context}),
                           constant(std::vector<int32_t>{last}, Shape{1}));
    text += alphabet.letters[static_cast<size_t>(id.item<int64_t>())];
  }
  return text;
}

int learn(const Options& o) {
  random::set_seed(o.seed);
  const std::string text = read_text(o.text);
  const Alphabet alphabet(text);
  const Tensor ids = alphabet.encode(text);
  const int64_t cut = ids.shape()[0] / 10 * 9;
  const auto training =
      pieces(ids[{slice(0, cut)}], o.context, 7)
          .shuffle(1 << 18, {.seed = static_cast<uint64_t>(o.seed)})
          .repeat()
          .batch(o.batch_size)
          .take(o.steps)
          .prefetch(data::AUTOTUNE);
  const auto validation =
      pieces(ids[{slice(cut)}], o.context, o.context).batch(64);

  const distribute::Strategy strategy = strategy_of(o, alphabet.size());
  const auto scope = strategy.scope();
  keras::Model model = make_model(o, alphabet.size());
  // Rises for a while, then falls to a tenth.
  const int64_t rising = std::min<int64_t>(100, o.steps / 2);
  const auto rate = keras::optimizers::schedules::CosineDecay(
      o.rate / 10, o.steps - rising,
      {.alpha = 0.1, .warmup_target = o.rate, .warmup_steps = rising});
  model.compile({.optimizer = keras::AdamW(rate),
                 .loss = keras::losses::SparseCategoricalCrossentropy(
                     {.from_logits = true})});
  fmt::print("{} characters, {} different; {} parameters; {} steps of {}\n",
             text.size(), alphabet.size(), model.count_params(), o.steps,
             o.batch_size);
  model.fit(training,
            {.epochs = 1, .callbacks = example::callbacks_of(o.backup)});
  if (!o.save.empty()) model.save_weights(o.save);
  const double loss = model.evaluate(validation).at("loss");
  fmt::print("validation loss: {:.4f} nats per character\n", loss);
  if (o.sample > 0) fmt::print("{}\n", sample(model, alphabet, o));
  if (o.json) {
    fmt::print(
        "{}\n",
        nlohmann::json{{"validation_loss", loss}, {"steps", o.steps}}.dump());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Trains a small transformer on the characters of a text.",
               "char_lm");
  app.add_option("--text", o.text, "file to learn from")->required();
  app.add_option("--steps", o.steps, "of training")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--batch-size", o.batch_size, "pieces of text per step")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--rate", o.rate, "learning rate")->capture_default_str();
  app.add_option("--seed", o.seed, "of weights, order and samples")
      ->check(cli::whole_number<int64_t>())
      ->capture_default_str();
  app.add_option("--sample", o.sample, "characters to write at the end")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--prompt", o.prompt, "what they continue");
  app.add_option("--temperature", o.temperature, "below 1: likelier ones")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--stages", o.stages, "devices that follow each other")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--parts", o.parts, "devices that divide each layer")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--micro-batches", o.micro_batches, "of a pipeline")
      ->check(CLI::Range(1, 1 << 10))
      ->capture_default_str();
  example::add_flags(&app, &o.backup);
  app.add_option("--save", o.save, "safetensors file for the weights");
  app.add_flag("--json", o.json, "end with one line of JSON");
  return example::main_of(&app, argc, argv, [&] { return learn(o); });
}
