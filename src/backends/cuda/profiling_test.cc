// The data that profilers receive: NVTX ranges, and traces with times from
// CUPTI or, without it, from events. The libraries are fakes
// (conformance/gpu_stand_ins).

#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/cuda/ranges.h"
#include "backends/cuda/scenario_testing.h"
#include "base/fresh_process_testing.h"

namespace berth::cuda {
namespace {

using fresh_process::check;
using fresh_process::refuses;
using Json = nlohmann::json;

const std::string kFolder =
    std::filesystem::path(fake_file(BERTH_FAKE_CUDA_FILE)).parent_path();

// A file named after this process, removed at the end.
struct OwnFile {
  const std::string path =
      "/tmp/berth_trace_" + std::to_string(getpid()) + ".json";
  OwnFile() { setenv("BERTH_GPU_TRACE", path.c_str(), 1); }
  ~OwnFile() { std::remove(path.c_str()); }
};

// The events of a trace, and "times" of the first event of a device.
struct Trace {
  std::vector<Json> events;
  std::string times;

  explicit Trace(const std::string& path) {
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    check(text.ends_with(",\n"), "whole lines");
    text.replace(text.size() - 2, 2, "]");
    for (Json& e : Json::parse(text)) {
      if (e["ph"] == "X") events.push_back(e);
      if (e["name"] == "process_name" && times.empty()) {
        times = e["args"]["times"];
      }
    }
  }
};

// Runs three works on a device and an empty one; waits for them.
void works_of(gpu::GpuDevice& device) {
  const BlockRef block = BlockRef::adopt(device.allocator().allocate(64));
  for (int i = 0; i < 3; ++i) {
    launch_on(device.compute_stream(), [&device, block](Stream& s) {
      device.fill_async(s, block->data, 1, 64);
    });
  }
  // Work that gives the card nothing to do is not an event.
  launch_on(device.compute_stream(), [](Stream&) {});
  synchronize(device.compute_stream().record());
}

void by_cupti() {
  const OwnFile file;
  setenv("BERTH_CUDA_LIBRARIES", kFolder.c_str(), 1);
  kFake->begin("devices=2");
  CardPair pair;
  works_of(pair.device(0));
  const Trace trace(file.path);
  check(trace.times == "by CUPTI, of each kernel", trace.times);
  check(trace.events.size() == 4, "one kernel of each work");
  double last = -1;
  for (const Json& e : trace.events) {
    check(e["name"] == "Test", "the op's name");
    check(e["args"]["kernel"] == "fake_kernel", "the kernel's name");
    check(std::abs(e["dur"].get<double>() - 0.5) < 0.01, "half a us");
    const double at = e["ts"];
    check(last < 0 || std::abs(at - last - 1) < 0.01, "one us after the last");
    last = at;
  }
}

void by_events() {
  const OwnFile file;
  setenv("BERTH_CUDA_LIBRARIES", kFolder.c_str(), 1);
  setenv("BERTH_FAKE_CUPTI", "refuse", 1);
  kFake->begin("devices=2");
  CardPair pair;
  works_of(pair.device(1));
  const Trace trace(file.path);
  check(trace.times.starts_with("of events around each op (libcupti.so.13: "
                                "cuptiActivityEnable"),
        trace.times);
  check(trace.events.size() == 3, "each work");
  double end = 0;
  for (const Json& e : trace.events) {
    check(e["name"] == "Test", "the op's name");
    check(e["ts"].get<double>() >= end, "one after the other");
    end = e["ts"].get<double>() + e["dur"].get<double>() - 0.002;
  }
}

void nowhere() {
  setenv("BERTH_GPU_TRACE", "/dev/null/trace.json", 1);
  kFake->begin("devices=2");
  CardPair pair;
  auto& stream =
      static_cast<gpu::QueueStream&>(pair.device(0).compute_stream());
  refuses<errors::InvalidArgument>([&] { stream.queue(); },
                                   "BERTH_GPU_TRACE: /dev/null/trace.json");
}

class Profiling : public CudaTest {};

TEST_F(Profiling, ATraceHasTheCardsOwnTimesByOp) {
  IN_A_FRESH_PROCESS(by_cupti());
}
TEST_F(Profiling, WithoutCuptiTimesAreThoseOfEventsWhichTheTraceSays) {
  IN_A_FRESH_PROCESS(by_events());
}
TEST_F(Profiling, ATraceThatCannotBeWrittenIsAnError) {
  IN_A_FRESH_PROCESS(nowhere());
}

// Returns what a tool receives for a work; "": nothing.
std::string heard(const char* nvtx) {
  const std::string tool = kFolder + "/libberth_fake_nvtx.so";
  setenv("NVTX_INJECTION64_PATH", tool.c_str(), 1);
  if (nvtx != nullptr) setenv("BERTH_NVTX", nvtx, 1);
  kFake->begin("devices=2");
  CardPair pair;
  works_of(pair.device(0));
  void* library = dlopen(tool.c_str(), RTLD_NOW);
  check(library != nullptr, "the tool");
  const auto text =
      reinterpret_cast<const char* (*)()>(dlsym(library, "berth_fake_nvtx"));
  return text();
}

void a_tool() {
  check(heard(nullptr) == "Test()Test()Test()Test()", "four ranges");
}
void a_tool_that_is_not_wanted() { check(heard("0").empty(), "silence"); }

TEST_F(Profiling, AToolHearsOfEachOp) {
  IN_A_FRESH_PROCESS(a_tool());
  IN_A_FRESH_PROCESS(a_tool_that_is_not_wanted());
}

TEST_F(Profiling, WithoutAToolNobodyIsTold) {
  if (getenv("NVTX_INJECTION64_PATH") != nullptr) GTEST_SKIP() << "a tool is";
  EXPECT_FALSE(ranges_asked());
}

}  // namespace
}  // namespace berth::cuda
