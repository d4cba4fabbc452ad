// What a call costs on a device, whatever it computes.

#include "bench/gpu/timed.h"

namespace berth_bench {

using namespace berth;

namespace {

constexpr int kOps = 50;  // of the longer plan

// Seconds of one call of fn(), the median of `blocks`.
template <class Fn>
double each(int blocks, Fn&& fn) {
  std::vector<double> seconds;
  for (int i = 0; i < blocks; ++i) {
    const double start = now_seconds();
    fn();
    seconds.push_back(now_seconds() - start);
  }
  return summarize(std::move(seconds)).median;
}

// A plan of `ops` products, which nothing fuses.
auto plan_of(int ops) {
  return function(
      [ops](const Tensor& x) {
        Tensor y = x;
        for (int i = 0; i < ops; ++i) y = linalg::matmul(y, x);
        return y;
      },
      {.name = "products"});
}

}  // namespace

void latency_row(const GpuOptions& o) {
  const double begin = now_seconds();
  const Timed timed(o);
  const auto on = device(o.device);
  const Tensor x = zeros({16, 16});
  timed.wait();
  const double first = now_seconds() - begin;
  const int calls = o.small ? 20 : 1000;
  auto one = plan_of(1), many = plan_of(kOps);
  for (int i = 0; i < 10; ++i) one(x), many(x);  // until they are recorded
  const double eager = timed.block([&] { linalg::matmul(x, x); }, calls);
  const double plan = timed.block([&] { one(x); }, calls);
  const double plans = timed.block([&] { many(x); }, calls);
  const double trip = each(calls, [&] {
    linalg::matmul(x, x);
    timed.wait();
  });
  Device& d = timed.device();
  const size_t bytes = size_t{o.small ? 1u : 64u} << 20;
  std::vector<char> host(bytes);
  const BlockRef block = BlockRef::adopt(d.allocator().allocate(bytes));
  const auto in = [&](size_t n) {
    return each(10, [&] { d.copy_from_host(block->data, host.data(), n); });
  };
  const auto out = [&](size_t n) {
    return each(10, [&] { d.copy_to_host(host.data(), block->data, n); });
  };
  const double gb = 1e-9 * static_cast<double>(bytes);
  timed.line("gpu_latency")
      .add("first_op_ms", first * 1e3)
      .add("launch_us", eager * 1e6)
      .add("launch_and_wait_us", trip * 1e6)
      .add("plan_us", plan * 1e6)
      .add("plan_of_50_us", plans * 1e6)
      .add("copy_in_us", in(4096) * 1e6)
      .add("copy_out_us", out(4096) * 1e6)
      .add("copy_in_gb_per_second", gb / in(bytes))
      .add("copy_out_gb_per_second", gb / out(bytes))
      .print();
}

}  // namespace berth_bench
