// Elements per second of slices -> shuffle -> batch 64 -> prefetch over 60,000
// images of 784 float32 with int64 labels, the whole dataset in the buffer.
#include <vector>

#include "bench/bench_common.h"
#include "berth/data.h"
#include "berth/ops/array.h"
#include "device/device_manager.h"

namespace {

constexpr int64_t kImages = 60000, kPixels = 784, kBatch = 64;

}  // namespace

int main(int argc, char** argv) {
  using namespace berth;
  const auto args = berth_bench::parse_args(argc, argv);
  std::vector<float> pixels(static_cast<size_t>(kImages * kPixels));
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<float>(i % 251);
  }
  std::vector<int64_t> labels(static_cast<size_t>(kImages), 7);
  const auto dataset =
      data::Dataset::from_tensor_slices(
          {constant(pixels, {kImages, kPixels}), constant(labels, {kImages})})
          .shuffle(kImages, {.seed = 1})
          .batch(kBatch)
          .prefetch(data::AUTOTUNE);
  Allocator& memory = DeviceManager::get().host().allocator();
  int64_t rows = 0;
  const auto epoch = [&] {
    for (const Tensors& batch : dataset) rows += batch[0].shape()[0];
  };
  epoch();
  const uint64_t warm = memory.info().source_calls;
  const auto timing = berth_bench::measure_blocks(epoch, args.seconds, 1);
  const uint64_t calls = memory.info().source_calls - warm;
  if (rows % kImages != 0) return 1;
  berth_bench::Line("input_pipeline", args.cores)
      .timing(timing, "ms", 1e3)
      .add("elements_per_second", static_cast<double>(kImages) / timing.best)
      .add("warm_allocations", calls)
      .print();
  return 0;
}
