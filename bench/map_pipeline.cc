// Elements per second of 60,000 images of 28 x 28 uint8 with labels -> random
// crop to 24 x 24, cast, scaled to [0, 1] -> shuffle -> batch 64 -> prefetch:
// as a function of rows, and without the crop as a compiled function of
// batches and as ops on each element.
#include <vector>

#include "bench/bench_common.h"
#include "berth/data.h"
#include "berth/function.h"
#include "berth/ops/aliases.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"

namespace {

using namespace berth;  // NOLINT

constexpr int64_t kImages = 60000, kSide = 28, kCrop = 24, kBatch = 64;

data::Dataset images() {
  std::vector<uint8_t> pixels(kImages * kSide * kSide);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(i * 7);
  }
  return data::Dataset::from_tensor_slices(
      {constant(pixels, {kImages, kSide, kSide}),
       constant(std::vector<int64_t>(kImages, 7), {kImages})});
}

void crop(const data::RowIn& in, data::RowOut& out, data::RowRandom& random) {
  const auto* from = in.get<uint8_t>(0).data();
  auto* to = out.get<float>(0).data();
  from += random.below(kSide - kCrop + 1) * kSide;
  from += random.below(kSide - kCrop + 1);
  for (int64_t y = 0; y < kCrop; ++y, from += kSide, to += kCrop) {
    for (int64_t x = 0; x < kCrop; ++x) {
      to[x] = static_cast<float>(from[x]) * (1.0f / 255.0f);
    }
  }
  out.get<int64_t>(1)[0] = in.get<int64_t>(1)[0];
}

Tensors scale(const Tensors& e) {
  return {cast(e[0], float32) * (1.0 / 255.0), e[1]};
}

int measure(const char* kind, const data::Dataset& mapped,
            const berth_bench::Args& args) {
  const auto dataset = mapped.shuffle(kImages, {.seed = 1})
                           .batch(kBatch)
                           .prefetch(data::AUTOTUNE);
  int64_t rows = 0;
  const auto epoch = [&] {
    for (const Tensors& batch : dataset) rows += batch[0].shape()[0];
  };
  epoch();
  const auto timing = berth_bench::measure_blocks(epoch, args.seconds, 1);
  if (rows % kImages != 0) return 1;
  berth_bench::Line(kind, args.cores)
      .timing(timing, "ms", 1e3)
      .add("elements_per_second", static_cast<double>(kImages) / timing.best)
      .print();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto args = berth_bench::parse_args(argc, argv);
  if (!berth_bench::use_cores(args.cores)) {
    return berth_bench::skip("map_pipeline", args.cores,
                             "fewer cores than asked for");
  }
  const auto compiled = function(
      std::function<Tensors(Tensors)>([](Tensors e) { return scale(e); }));
  return measure("map_pipeline",
                 images().map_rows(
                     crop, {{Shape{kCrop, kCrop}, float32}, {Shape{}, int64}}),
                 args) |
         measure("map_pipeline_compiled",
                 images().map([&](const Tensors& e) { return compiled(e); },
                              {.vectorized = true}),
                 args) |
         measure("map_pipeline_eager",
                 images().map(scale, {.num_parallel_calls = data::AUTOTUNE}),
                 args);
}
