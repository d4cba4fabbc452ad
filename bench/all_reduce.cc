// All-reduce of 4 x 64 MB of float32 between four CPU devices of one core,
// against a loop that reads and writes as much on as many threads.

#include <pthread.h>

#include <barrier>
#include <functional>
#include <thread>

#include "bench_common.h"
#include "collective/testing.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kDevices = 4;
constexpr int64_t kElements = 16 << 20;  // 64 MB per device

// One thread per core that waits for work, as the devices have.
class Threads {
 public:
  explicit Threads(std::function<void(int)> work) : work_(std::move(work)) {
    const std::vector<int> cores = allowed_cores();
    for (int i = 0; i < kDevices; ++i) {
      threads_.emplace_back([this, i, core = cores[static_cast<size_t>(i)]] {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
        sched_setaffinity(0, sizeof set, &set);
        for (;;) {
          meet_.arrive_and_wait();
          if (stop_) return;
          work_(i);
          meet_.arrive_and_wait();
        }
      });
    }
  }
  ~Threads() {
    stop_ = true;
    meet_.arrive_and_wait();
    for (std::thread& t : threads_) t.join();
  }
  void run() {
    meet_.arrive_and_wait();
    meet_.arrive_and_wait();
  }

 private:
  std::function<void(int)> work_;
  std::barrier<> meet_{kDevices + 1};
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

#pragma GCC push_options
#pragma GCC optimize("O3")
void add_quarter(const float* const* in, float* out, int quarter) {
  const int64_t begin = kElements / kDevices * quarter;
  const float *a = in[0], *b = in[1], *c = in[2], *d = in[3];
  for (int64_t i = begin; i < begin + kElements / kDevices; ++i) {
    out[i] = (a[i] + b[i]) + (c[i] + d[i]);
  }
}
#pragma GCC pop_options

std::vector<std::string> devices() {
  std::vector<std::string> names;
  for (int d = 0; d < kDevices; ++d) {
    names.push_back(collective_tests::full_name("CPU", d));
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(kDevices)) {
    return skip("all_reduce", kDevices, "fewer than 4 cores");
  }
  config::set_device_list("CPUx4");
  debugging::set_diagnostic_handler([](const auto&) {});
  const auto names = devices();
  std::vector<Variable> pieces;
  for (int d = 0; d < kDevices; ++d) {
    const auto on = device(names[static_cast<size_t>(d)]);
    pieces.emplace_back(fill({kElements}, d + 1.0));
  }
  const Variable sum = [&] {
    const auto on = device(names[0]);
    return Variable(zeros({kElements}));
  }();
  Graph graph = collective_tests::trace({}, names, [&](Tensors&) {
    Tensors values;
    for (int d = 0; d < kDevices; ++d) {
      const auto on = device(names[static_cast<size_t>(d)]);
      values.push_back(pieces[static_cast<size_t>(d)].value());
    }
    const auto on = device(names[0]);
    sum.assign(collective_tests::all_reduce(values)[0]);
    return Tensors{};
  });
  for (Node& n : graph.nodes) n.replica = 0;
  GraphCallable step(std::move(graph), {});
  const auto reduce = [&] { collective_tests::call(step, {}); };

  std::vector<std::vector<float>> in(kDevices, std::vector<float>(kElements));
  std::vector<float> out(kElements);
  const float* from[kDevices];
  for (int d = 0; d < kDevices; ++d)
    from[d] = in[static_cast<size_t>(d)].data();
  Threads threads([&](int t) { add_quarter(from, out.data(), t); });

  reduce();
  if (sum.value().to_vector<float>()[kElements - 1] != 10) return 1;
  Timing ours, loop;
  ours.best = loop.best = 1e9;
  constexpr int kRounds = 4;
  const double seconds = args.seconds / kRounds / 2;
  for (int r = 0; r < kRounds; ++r) {
    const Timing a = measure_blocks(reduce, seconds, 1);
    const Timing b = measure_blocks([&] { threads.run(); }, seconds, 1);
    if (a.best < ours.best) ours = a;
    if (b.best < loop.best) loop = b;
  }
  if (std::getenv("SHOW_PLAN")) {
    std::fprintf(stderr, "%s\n", step.stages().plan.c_str());
  }
  const double bytes = (kDevices + 1.0) * kElements * sizeof(float);
  Line("all_reduce", kDevices)
      .timing(ours, "us", 1e6)
      .add("gb_per_second", bytes / ours.best / 1e9)
      .add("loop_us", loop.best * 1e6)
      .add("share_of_ceiling", loop.best / ours.best)
      .print();
}
