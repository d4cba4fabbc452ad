// Training steps as warm plans, and what copies of inputs add to one.

#include <fmt/format.h>

#include "bench/gpu/timed.h"

namespace berth_bench {

using namespace berth;

namespace {

constexpr int kBatches = 4;

Function<Tensor(const Tensor&, const Tensor&)> step_of(
    const DrawnModel& net, const std::string& name) {
  return function(
      [&net](const Tensor& x, const Tensor& y) { return net(x, y); },
      {.name = name + "_step"});
}

// Batches of the model's own, from host memory, for ever.
data::Dataset examples_of(const DrawnModel& net) {
  std::vector<Tensor> x, y;
  for (int i = 0; i < 2; ++i) {
    const auto on = device("/CPU:0");
    x.push_back(identity(net.images(i)));
    y.push_back(identity(net.labels(i)));
  }
  const auto on = device("/CPU:0");
  return data::Dataset::from_tensor_slices({concat(x, 0), concat(y, 0)})
      .repeat()
      .batch(net.batch(), {.drop_remainder = true});
}

}  // namespace

void step_row(const GpuOptions& o, const std::string& model) {
  const Timed timed(o);
  const auto on = device(o.device);
  const std::unique_ptr<DrawnModel> net = make_drawn_model(model, o.small);
  net->make(kBatches);
  auto step = step_of(*net, model);
  const double start = now_seconds();
  const float first = step(net->images(0), net->labels(0)).item<float>();
  const double first_call = now_seconds() - start;
  int i = 0;
  const Timing t = timed.median([&] {
    step(net->images(i), net->labels(i));
    ++i;
  });
  const float last = step(net->images(0), net->labels(0)).item<float>();
  const FunctionPlanInfo info = step.plan_info();
  timed.line("gpu_step")
      .add("model", model)
      .timing(t, "us", 1e6)
      .add("blocks", t.blocks)
      .add("examples_per_second", static_cast<double>(net->batch()) / t.median)
      .add("parameters", net->parameters())
      .add("in_float32", net->in_float32())
      .add("first_loss", first)
      .add("last_loss", last)
      .add("steps", i + 1)
      .add("first_call_seconds", first_call)
      .add("regions", info.regions)
      .add("transfers", info.transfers)
      .add("peak_bytes",
           config::get_memory_info(timed.device().short_name()).peak_bytes)
      .print();
}

void input_copy_row(const GpuOptions& o) {
  const Timed timed(o);
  const auto on = device(o.device);
  const auto net = make_drawn_model("resnet50", o.small);
  net->make(kBatches);
  auto step = step_of(*net, "resnet50");

  data::Dataset host = [&] {
    const auto outside = device(no_device);
    return examples_of(*net);
  }();
  // One batch from the host, and nothing else.
  auto plain = host.make_iterator();
  Tensors batch;
  std::vector<double> batching, copying;
  for (int i = 0; i < o.blocks; ++i) {
    double start = now_seconds();
    plain.next(batch);
    batching.push_back(now_seconds() - start);
    start = now_seconds();
    const Tensor there = copy_to_device(batch[0], timed.device());
    synchronize(there.impl()->block->ready);
    copying.push_back(now_seconds() - start);
  }
  const Timing copy = summarize(copying), made = summarize(batching);

  auto fed = host.prefetch_to_device(o.device).make_iterator();
  int i = 0;
  const auto without = [&] {
    step(net->images(i), net->labels(i));
    ++i;
  };
  const auto with = [&] {
    fed.next(batch);
    step(batch[0], batch[1]);
  };
  const int calls = std::max(3, timed.calls_per_block(without));
  timed.block(with, calls);
  std::vector<double> a, b;
  const double begin = now_seconds();
  while (timed.more(static_cast<int>(a.size()), begin)) {
    a.push_back(timed.block(without, calls));
    b.push_back(timed.block(with, calls));
  }
  const Timing resident = summarize(a), given = summarize(b);
  const double seen = std::max(0.0, given.median - resident.median);
  timed.line("gpu_input_copy")
      .add("model", "resnet50")
      .timing(given, "us", 1e6)
      .add("blocks", given.blocks)
      .add("resident_us", resident.median * 1e6)
      .add("copy_us", copy.median * 1e6)
      .add("batching_us", made.median * 1e6)
      .add("batch_bytes", batch[0].num_elements() * 4)
      .add("hidden", std::max(0.0, 1 - seen / copy.median))
      .print();
}

}  // namespace berth_bench
