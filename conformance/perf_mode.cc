// Mode perf: one JSON line per case marked perf_only. Gates nothing.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "conformance/device_run.h"
#include "conformance/host_run.h"
#include "conformance/modes.h"

namespace berth::conformance {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMinRuns = 5, kMaxRuns = 1000;
constexpr auto kTime = std::chrono::milliseconds(300);

double best_nanoseconds(const Case& c, const Tensors& args,
                        const Attrs* attrs) {
  Stream& stream = device_under_test().compute_stream();
  double best = 1e30;
  const Clock::time_point end = Clock::now() + kTime;
  for (int run = 0; run < kMinRuns || (run < kMaxRuns && Clock::now() < end);
       ++run) {
    const Clock::time_point start = Clock::now();
    const Tensors out = call_on_device(c.def(), args, attrs);
    stream.synchronize(stream.record());
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

Cost cost_of(const Case& c, const Attrs* attrs, const Arrays& in) {
  const HostCall call = host_call(c, AttrsRef::share(attrs));
  std::vector<OutSpec> out = infer_on_host(call, in);
  const std::vector<SpecView> specs = specs_of(call, in);
  return c.def().cost(InferContext(c.def(), attrs, specs, out));
}

void run_one(const Case& c, DType dtype) {
  const AttrsRef attrs = c.attrs_for(dtype);
  const Arrays in = make_inputs(c, dtype);
  const double best = best_nanoseconds(c, to_device(c, in), attrs.get());
  const Cost cost = cost_of(c, attrs.get(), in);
  nlohmann::ordered_json line;
  line["op"] = c.op;
  line["case"] = c.label;
  for (const Array& a : in) {
    line["shapes"].push_back(
        std::vector<int64_t>(a.shape().begin(), a.shape().end()));
  }
  line["dtype"] = name_of(dtype);
  line["device"] = device_under_test().short_name();
  line["best_ns"] = best;
  line["gb_per_s"] = cost.bytes / best;
  line["gflop_per_s"] = cost.flops / best;
  fmt::print("{}\n", line.dump());
}

}  // namespace

int run_perf(const std::string& op) {
  int lines = 0;
  for (const Case& c : all_cases().all()) {
    if (!c.perf || (!op.empty() && c.op != op)) continue;
    for (const DType dtype : dtypes_of(c)) {
      run_one(c, dtype);
      ++lines;
    }
  }
  return lines > 0 ? 0 : 1;
}

}  // namespace berth::conformance
