// BERTH_GPU_TRACE on a device that computes.

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/opencl/opencl_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth::opencl {
namespace {

using fresh_process::check;
using Json = nlohmann::json;

// Returns the events of ops and copies during `run`.
std::vector<Json> traced(const std::function<void()>& run) {
  const std::string path =
      "/tmp/berth_trace_" + std::to_string(getpid()) + ".json";
  setenv("BERTH_GPU_TRACE", path.c_str(), 1);
  run();
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::remove(path.c_str());
  check(text.ends_with(",\n"), "whole lines");
  text.replace(text.size() - 2, 2, "]");
  std::vector<Json> events;
  for (Json& e : Json::parse(text)) {
    if (e["ph"] == "X") events.push_back(std::move(e));
  }
  return events;
}

void a_step() {
  const auto events = traced([] {
    const auto on = device("/GPU:0");
    const auto step = function(
        [](const Tensor& x) { return math::reduce_sum(linalg::matmul(x, x)); });
    const Tensor x = with_device("/CPU:0", [] { return ones({64, 64}); });
    for (int i = 0; i < 2; ++i) {
      check(step(x).item<float>() == 64 * 64 * 64, "the sum");
    }
  });
  int products = 0, brought = 0, read = 0;
  double end[3] = {};
  for (const Json& e : events) {
    products += e["name"] == "MatMul";
    const bool copy = e["cat"] == "copy";
    brought += copy && e["args"]["bytes"] == 64 * 64 * 4;
    read += copy && e["args"]["bytes"] == 4;
    check(e["args"]["bytes"] != 0, "nothing that did nothing");
    // A stream does one thing after another.
    double& last = end[e["tid"].get<size_t>()];
    check(e["ts"].get<double>() >= last - 0.01, "in order");
    check(e["dur"].get<double>() >= 0, "forwards");
    last = e["ts"].get<double>() + e["dur"].get<double>();
  }
  check(products == 2, "two products");
  check(brought == 2, "the argument was brought twice");
  check(read == 2, "the sum was read twice");
}

class Traces : public OpenClTest {};

TEST_F(Traces, HaveEachOpOnItsStream) { IN_A_FRESH_PROCESS(a_step()); }

}  // namespace
}  // namespace berth::opencl
