// Products and elementwise chains on large arrays.

#include <cmath>

#include "bench/gpu/timed.h"

namespace berth_bench {

using namespace berth;

namespace {

Tensor chain_of_8(const Tensor& x, const Tensor& b) {
  const Tensor y = nn::relu(x * b + 0.5f);
  return math::tanh(y - b) * y + math::sqrt(y + 1.0f);
}

// Copies one tensor's bytes over another's, both of the device.
class DeviceCopy {
 public:
  DeviceCopy(Device& device, const Tensor& from, const Tensor& to)
      : device_(device),
        copy_{to.impl()->data(), &device.memory(), from.impl()->data(),
              &device.memory(), from.impl()->size_bytes()} {}
  void operator()() {
    Work work;
    work.run = [](void* self, Stream& stream) {
      auto* c = static_cast<DeviceCopy*>(self);
      c->device_.copy_async(stream, c->copy_);
    };
    work.context = this;
    work.what = "copy";
    work.moved_bytes = 2 * static_cast<double>(copy_.bytes);
    device_.compute_stream().launch(work);
  }

 private:
  Device& device_;
  Copy copy_;
};

Tensor drawn_array(const Shape& shape, int64_t seed) {
  random::set_seed(seed);
  return random::uniform(shape, {.minval = -1.0, .maxval = 1.0});
}

}  // namespace

void product_row(const GpuOptions& o) {
  const Timed timed(o);
  const auto on = device(o.device);
  const int64_t size = o.small ? 128 : 8192;
  const Tensor a = math::cast(drawn_array({size, size}, 1), bfloat16),
               b = math::cast(drawn_array({size, size}, 2), bfloat16);
  auto product =
      function([](const Tensor& x, const Tensor& y) { return matmul(x, y); },
               {.name = "product"});
  const Timing t = timed.median([&] { product(a, b); });
  const double n = static_cast<double>(size);
  timed.line("gpu_product")
      .add("size", size)
      .timing(t, "us", 1e6)
      .add("blocks", t.blocks)
      .add("tflops", 2e-12 * n * n * n / t.median)
      .print();
}

void chain_row(const GpuOptions& o) {
  const Timed timed(o);
  const auto on = device(o.device);
  const int64_t size = int64_t{o.small ? 1 : 64} << 20;
  const Tensor x = drawn_array({size}, 1), b = drawn_array({size}, 2);
  auto chain = function(chain_of_8, {.name = "chain"});
  const Tensor target = chain(x, b);  // a copy's; nothing else reads it
  const auto run = [&] { chain(x, b); };
  DeviceCopy copy(timed.device(), x, target);
  timed.wait();
  const int calls = timed.calls_per_block(run);
  const int copies = timed.calls_per_block(copy);
  std::vector<double> ours, copied;
  const double begin = now_seconds();
  while (timed.more(static_cast<int>(ours.size()), begin)) {
    ours.push_back(timed.block(run, calls));
    copied.push_back(timed.block(copy, copies));
  }
  const Timing t = summarize(ours), c = summarize(copied);
  const double bytes = 4.0 * static_cast<double>(size);
  const double gb = 3 * bytes / t.median / 1e9;
  const double copy_gb = 2 * bytes / c.median / 1e9;
  timed.line("gpu_chain")
      .add("size", size)
      .timing(t, "us", 1e6)
      .add("blocks", t.blocks)
      .add("gb_per_second", gb)
      .add("copy_gb_per_second", copy_gb)
      .add("share", gb / copy_gb)
      .print();
}

}  // namespace berth_bench
