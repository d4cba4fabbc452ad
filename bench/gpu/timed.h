// Timing of work that a device does later: blocks of calls, each ended by
// waiting for the device. Header only; for the thread that calls.
#ifndef BERTH_BENCH_GPU_TIMED_H_
#define BERTH_BENCH_GPU_TIMED_H_

#include <memory>
#include <string>
#include <vector>

#include "bench/bench_common.h"
#include "bench/gpu/rows.h"
#include "bench/models/gpt2.h"
#include "bench/models/mlp.h"
#include "bench/models/resnet50.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"

namespace berth_bench {

class Timed {
 public:
  explicit Timed(const GpuOptions& o)
      : options_(o),
        device_(berth::DeviceManager::get().lookup(
            berth::DeviceName::parse(o.device))) {}

  berth::Device& device() const { return device_; }

  // Waits for what the device was given, on its compute stream.
  void wait() const {
    berth::Stream& stream = device_.compute_stream();
    stream.synchronize(stream.record());
  }

  // Seconds of `calls` calls, with their end.
  template <class Step>
  double block(Step&& step, int calls) const {
    const double start = now_seconds();
    for (int i = 0; i < calls; ++i) step();
    wait();
    return (now_seconds() - start) / calls;
  }

  // Warms up; the calls that last about 20 ms.
  template <class Step>
  int calls_per_block(Step&& step) const {
    for (int i = 0; i < 3; ++i) block(step, 1);
    const double once = std::min(block(step, 1), block(step, 3));
    return static_cast<int>(std::clamp(0.02 / once, 1.0, 10000.0));
  }

  template <class Step>
  Timing median(Step&& step) const {
    const int calls = calls_per_block(step);
    std::vector<double> blocks;
    const double begin = now_seconds();
    while (more(static_cast<int>(blocks.size()), begin)) {
      blocks.push_back(block(step, calls));
    }
    return summarize(std::move(blocks));
  }

  // Whether another block is to be measured after `done` ones.
  bool more(int done, double begin) const {
    if (done >= options_.blocks) return false;
    return done < 5 || now_seconds() - begin < options_.seconds;
  }

  // A line with what all rows have in common.
  Line line(const std::string& bench) const {
    Line l(bench, 1);
    l.add("device", device_.short_name())
        .add("card", device_.description())
        .add("small", options_.small);
    return l;
  }

 private:
  const GpuOptions& options_;
  berth::Device& device_;
};

// "mlp", "resnet50", "gpt2"; `small`: of the same form, for a processor.
inline std::unique_ptr<DrawnModel> make_drawn_model(
    const std::string& name, bool small,
    berth::DType compute = berth::bfloat16) {
  if (name == "mlp") {
    if (small) {
      return std::make_unique<Mlp>(Mlp::Sizes{.batch = 8, .hidden = 32});
    }
    return std::make_unique<Mlp>();
  }
  if (name == "resnet50") {
    ResNet50::Sizes sizes{.compute = compute};
    if (small) {
      sizes = {.batch = 4,
               .image = 65,
               .width = 8,
               .classes = 10,
               .rate = 0.001f,
               .compute = compute};
    }
    return std::make_unique<ResNet50>(sizes);
  }
  if (name == "gpt2") {
    Gpt2::Sizes sizes{.compute = compute};
    if (small) {
      sizes = {.batch = 2,
               .sequence = 16,
               .layers = 2,
               .width = 32,
               .heads = 4,
               .tokens = 61,
               .rows = 64,
               .positions = 32,
               .compute = compute};
    }
    return std::make_unique<Gpt2>(sizes);
  }
  throw berth::errors::NotFound("no model \"" + name +
                                "\"; there are mlp, resnet50 and gpt2");
}

}  // namespace berth_bench

#endif  // BERTH_BENCH_GPU_TIMED_H_
