// bench_gpu: the rows of the table for cards, one function each. Each prints
// JSON lines (bench_common.h); docs/json.md has their fields. They run on any
// device, so that they cannot rot where there is no card.
#ifndef BERTH_BENCH_GPU_ROWS_H_
#define BERTH_BENCH_GPU_ROWS_H_

#include <string>

namespace berth_bench {

struct GpuOptions {
  std::string device = "/GPU:0";
  std::string model;    // which row; "": all
  bool small = false;   // sizes that a processor can bear
  int blocks = 20;      // of which the median is taken
  double seconds = 30;  // a row ends after so many, with 5 blocks at least
};

// A product of bfloat16 matrices, 8192^3.
void product_row(const GpuOptions& o);
// That product by the fastest of cuBLASLt's algorithms, without the engine;
// says why not where the library, its header or a card is missing.
void cublaslt_row(const GpuOptions& o);
// A training step of "mlp", "resnet50" or "gpt2".
void step_row(const GpuOptions& o, const std::string& model);
// Eight elementwise ops fused, on 64M float32, beside a copy.
void chain_row(const GpuOptions& o);
// What launches, plans and copies cost at least.
void latency_row(const GpuOptions& o);
// A step that gets its batches from the host, beside one that has them.
void input_copy_row(const GpuOptions& o);

}  // namespace berth_bench

#endif  // BERTH_BENCH_GPU_ROWS_H_
