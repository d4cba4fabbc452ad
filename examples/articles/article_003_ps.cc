// Multiple GPUs, the strategy that the article names without an example: very
// large models, their variables on parameter servers.
//
//   berth launch --workers 2 --ps 1 -- article_003_ps

#include <optional>

#include "article.h"

using namespace berth;

namespace {

constexpr int kWords = 20'000, kWidth = 16, kLength = 8;

// Sentences of word numbers; the label says whether word 0 to 99 is in one.
data::Dataset sentences(const distribute::InputContext& c) {
  return data::Dataset::range(4096)
      .shard(c.num_input_pipelines, c.input_pipeline_id)
      .map([](const Tensors& element) {
        const Tensor& i = element[0];
        const Tensor k =
            math::floormod(i * constant(int64_t{7919}) +
                               range(0, kLength) * constant(int64_t{104729}),
                           constant(int64_t{kWords}));
        const Tensor rare =
            where(math::less(math::floormod(i, constant(int64_t{2})),
                             constant(int64_t{1})),
                  math::floormod(k, constant(int64_t{100})), k);
        return Tensors{rare, math::cast(math::reduce_any(math::less(
                                            rare, constant(int64_t{100}))),
                                        float32)};
      })
      .batch(64)
      .repeat();
}

// A table of words in two shards, of which a step moves the rows it needs.
int train(const distribute::ParameterServerStrategy& strategy) {
  const distribute::ClusterCoordinator coordinator(strategy);
  std::optional<Variable> table, weight;
  {
    const auto scope = strategy.scope();
    table.emplace(random::normal({kWords, kWidth}) * 0.05f,
                  VariableOptions{.name = "words"});
    weight.emplace(random::normal({kWidth, 1}) * 0.3f,
                   VariableOptions{.name = "weight"});
  }
  keras::optimizers::Adam adam(0.02);
  const auto step = function([&](const Tensors& batch) {
    GradientTape tape;
    const Tensor rows = math::reduce_mean(gather(table->value(), batch[0]),
                                          {.axis = std::vector<int64_t>{1}});
    const Tensor logits = reshape(matmul(rows, *weight), {-1});
    const Tensor loss = math::reduce_mean(
        nn::sigmoid_cross_entropy_with_logits(batch[1], logits));
    const std::vector<Variable> all{*table, *weight};
    adam.apply_gradients(tape.gradient(loss, all), all);
    return loss;
  });
  const auto batches =
      coordinator.create_per_worker_dataset("sentences").make_iterator();
  fmt::print("workers: {}, parameter servers: {}\n", strategy.num_workers(),
             strategy.num_parameter_servers());
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<distribute::RemoteValue<Tensor>> losses;
    for (int i = 0; i < 64; ++i) {
      losses.push_back(coordinator.schedule(step, batches));
    }
    coordinator.join();
    fmt::print("epoch {}: loss {:.3f}\n", epoch + 1,
               losses.back().fetch().item<float>());
  }
  for (const std::string& server : strategy.servers_of(*table)) {
    fmt::print("a shard of words: {}\n", server);
  }
  return 0;
}

int sensible() {
  distribute::register_dataset("sentences", sentences);
  if (distribute::cluster_resolver::from_environment().alone()) {
    fmt::print(
        "This process is alone; start a cluster: berth launch --workers 2 "
        "--ps 1 -- article_003_ps\n");
    return 0;
  }
  const distribute::ParameterServerStrategy strategy(
      distribute::cluster_resolver::from_environment(),
      {.variable_partitioner =
           distribute::partitioners::MinSizePartitioner({.max_shards = 2})});
  return train(strategy);
}

// As the text has it: the strategy alone, with what is in the environment.
int as_printed() {
  distribute::register_dataset("sentences", sentences);
  try {
    const distribute::ParameterServerStrategy strategy;
    return train(strategy);
  } catch (const errors::Error& e) {
    fmt::print("{}\n", e.what());
    return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_003_ps", argc, argv, sensible, as_printed);
}
