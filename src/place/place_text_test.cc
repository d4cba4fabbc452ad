#include "place/place_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "berth/errors.h"
#include "op/kernel.h"
#include "place/place.h"

namespace berth {
namespace {

using Names = std::vector<std::string>;

std::string local(const std::string& device) {
  return "/job:localhost/replica:0/task:0/device:" + device;
}

TEST(PlaceText, AListGivesGpusThenCpusThenOthersByNumber) {
  EXPECT_EQ(
      devices_of_list("cpux2, NPU,GPUx11,CPU[3-5]"),
      (Names{local("GPU:0"), local("GPU:1"), local("GPU:2"), local("GPU:3"),
             local("GPU:4"), local("GPU:5"), local("GPU:6"), local("GPU:7"),
             local("GPU:8"), local("GPU:9"), local("GPU:10"), local("CPU:0"),
             local("CPU:1"), local("CPU:2"), local("NPU:0")}));
}

TEST(PlaceText, BadListsAreErrors) {
  for (const char* list : {"", "CPUx0", "CPUxx", "CPU[", "CPUx60,GPUx4060", ",",
                           "CPU,,GPU", "GPUx4097"}) {
    EXPECT_THROW(devices_of_list(list), errors::InvalidArgument) << list;
  }
  EXPECT_EQ(devices_of_list("CPUx96,GPUx4000").size(), 4096u);
}

TEST(PlaceText, DeviceLinesMayBeOfAnyJob) {
  const GraphText text = parse_text(
      "berth-graph 1\n"
      "device CPU\n"
      "device \"/job:worker/task:10/device:GPU:0\"\n"
      "device \"/job:worker/task:2/device:GPU:1\"\n"
      "device \"/job:another/device:GPU:0\"\n"
      "device \"GPU:3\"\n");
  EXPECT_EQ(
      devices_of_text(text),
      (Names{local("GPU:3"), "/job:another/replica:0/task:0/device:GPU:0",
             "/job:worker/replica:0/task:2/device:GPU:1",
             "/job:worker/replica:0/task:10/device:GPU:0", local("CPU:0")}));
}

TEST(PlaceText, TwoLinesOfOneDeviceAreAnError) {
  const GraphText text =
      parse_text("berth-graph 1\ndevice CPU\ndevice \"/device:CPU:0\"\n");
  EXPECT_THROW(devices_of_text(text), errors::InvalidArgument);
}

GraphText declared() {
  return parse_text(
      "berth-graph 1\n"
      "op OnGpu (x: any) -> (y)\n"
      "op None (x: any) -> (y)\n"
      "kernel OnGpu on gpu priority 3 types float32|int32\n"
      "kernel OnGpu on GPU priority -2 types int32|int64\n"
      "kernel Neg on NPU, CPU priority -1\n");
}

TEST(PlaceText, KernelLinesHoldForIdentityToo) {
  GraphText text = parse_text(
      "berth-graph 1\n"
      "kernel Identity on CPU\n"
      "node x = _Arg() {dtype = float32, index = 0, shape = shape[2]} -> "
      "float32[2] on \"/device:GPU:0\"\n"
      "node y = Identity(x:0) -> float32[2] on \"/device:GPU:0\"\n");
  PlaceOptions o = place_options(text, {local("GPU:0"), local("CPU:0")});
  place(text.graph, o);
  EXPECT_EQ(text.graph[0].assigned, local("GPU:0"));
  EXPECT_EQ(text.graph[1].assigned, local("CPU:0"));
}

TEST(PlaceText, AListFollowsTheTextsOrderAndLocalTask) {
  const GraphText text = parse_text(
      "berth-graph 1\n"
      "local \"/job:worker/task:1\"\n"
      "order npu\n"
      "device \"/job:worker/task:0/device:GPU:0\"\n"
      "device \"GPU:0\"\n"
      "device \"/device:NPU:0\"\n");
  const std::string here = "/job:worker/replica:0/task:1/device:";
  EXPECT_EQ(devices_of_text(text),
            (Names{here + "NPU:0", here + "GPU:0",
                   "/job:worker/replica:0/task:0/device:GPU:0"}));
  EXPECT_EQ(devices_of_list("CPU,GPU,NPU", &text),
            (Names{local("NPU:0"), local("GPU:0"), local("CPU:0")}));
}

TEST(PlaceText, DeclaredKernelsSayWhereAnOpRuns) {
  const GraphText text = declared();
  const PlaceOptions o =
      place_options(text, {local("GPU:0"), local("CPU:0"), local("NPU:0")});
  const OpDef& on_gpu = *text.graph.declared_ops[0];
  const OpDef& none = *text.graph.declared_ops[1];
  const OpDef& neg = op_named("Neg");
  const OpDef& add = op_named("AddV2");
  const auto& d = o.devices;
  EXPECT_EQ(d[0].name, local("GPU:0"));
  EXPECT_TRUE(d[0].runs(on_gpu, float32));
  EXPECT_FALSE(d[0].runs(on_gpu, float64));
  EXPECT_FALSE(d[1].runs(on_gpu, float32));
  EXPECT_EQ(d[0].priority(on_gpu, float32), 3);
  EXPECT_EQ(d[0].priority(on_gpu, int32), 3);
  EXPECT_EQ(d[0].priority(on_gpu, int64), -2);
  for (const PlaceDevice& device : d) EXPECT_FALSE(device.runs(none, float32));
  // An op of the catalogue with kernel lines runs only where they say.
  EXPECT_FALSE(d[0].runs(neg, float32));
  EXPECT_TRUE(d[1].runs(neg, float32));
  EXPECT_EQ(d[1].priority(neg, float32), -1);
  EXPECT_TRUE(d[2].runs(neg, float32));
  // An op without: wherever the engine has it, or on every CPU and GPU when
  // nothing is known about that.
  EXPECT_TRUE(d[0].runs(add, float32));
  EXPECT_TRUE(d[1].runs(add, float32));
  EXPECT_FALSE(d[2].runs(add, float32));
  EXPECT_EQ(d[0].priority(add, float32), 0);
}

TEST(PlaceText, AKernelOfAnyDtypeRunsAnOpWithoutDtype) {
  const GraphText text = parse_text(
      "berth-graph 1\n"
      "op Use (v: resource read) -> ()\n"
      "op Typed (v: resource read) -> ()\n"
      "kernel Use on GPU priority 2\n"
      "kernel Typed on GPU types float32\n");
  const PlaceOptions o = place_options(text, {local("GPU:0")});
  const OpDef& use = *text.graph.declared_ops[0];
  EXPECT_TRUE(o.devices[0].runs(use, DType::kInvalid));
  EXPECT_EQ(o.devices[0].priority(use, DType::kInvalid), 2);
  EXPECT_FALSE(o.devices[0].runs(*text.graph.declared_ops[1], DType::kInvalid));
}

TEST(PlaceText, BuiltInKernelsSayWhereOpsOfTheCatalogueRun) {
  const GraphText text = declared();
  KernelTable table;
  table.direct(
      "AddV2", dtype_bit(float32), [](const KernelCall&) {}, "test");
  const PlaceOptions o = place_options(
      text, {local("GPU:0"), local("CPU:0")}, [&](const std::string& type) {
        return type == "CPU" ? &table : nullptr;
      });
  const OpDef& add = op_named("AddV2");
  EXPECT_TRUE(o.devices[1].runs(add, float32));
  EXPECT_FALSE(o.devices[1].runs(add, int32));
  EXPECT_FALSE(o.devices[0].runs(add, float32));
}

TEST(PlaceText, TheMachineIsAsDeclaredAndElseAssumed) {
  const GraphText text = parse_text(
      "berth-graph 1\n"
      "class CPU on CPU flops 7 bandwidth 8 launch 9\n"
      "class fast on GPU flops 10\n"
      "device CPU memory 100\n"
      "device \"GPU:0\" class fast copies both\n"
      "device \"GPU:1\"\n"
      "device \"GPU:2\" class fast copies free\n"
      "device \"GPU:3\" class own\n"
      "link \"GPU:0\" -> CPU latency 1.5 bandwidth 20 shared 4\n");
  const std::vector<std::string> names = devices_of_text(text);
  const Machine m = machine_of(text, names);
  const Machine assumed = assumed_machine(names);
  ASSERT_EQ(m.devices.size(), 5u);  // GPU:0 to 3, CPU:0
  EXPECT_EQ(m.devices[4].memory_limit, 100);
  EXPECT_EQ(m.devices[4].copies, assumed.devices[4].copies);
  EXPECT_EQ(m.class_of(4).flops_per_us, 7);
  EXPECT_EQ(m.class_of(4).bytes_per_us, 8);
  EXPECT_EQ(m.class_of(4).launch_us, 9);
  EXPECT_EQ(m.class_of(4).origin, CostOrigin::kDeclared);
  EXPECT_EQ(m.devices[0].copies, CopyRule::kBoth);
  EXPECT_EQ(m.devices[2].copies, CopyRule::kFree);
  EXPECT_EQ(m.class_of(0).name, "fast");
  EXPECT_EQ(m.class_of(0).flops_per_us, 10);
  EXPECT_EQ(m.class_of(0).launch_us, assumed.class_of(0).launch_us);
  EXPECT_EQ(m.devices[2].device_class, m.devices[0].device_class);
  EXPECT_EQ(m.class_of(1).flops_per_us, assumed.class_of(1).flops_per_us);
  EXPECT_EQ(m.class_of(3).name, "own");
  EXPECT_EQ(m.class_of(3).flops_per_us, assumed.class_of(3).flops_per_us);
  EXPECT_EQ(m.link(0, 4).latency_us, 1.5);
  EXPECT_EQ(m.link(0, 4).bytes_per_us, 20);
  EXPECT_EQ(m.link(0, 4).shared, 4);
  EXPECT_TRUE(m.link(4, 0).shared.empty());
  EXPECT_EQ(m.link(4, 0).latency_us, assumed.link(4, 0).latency_us);
}

TEST(PlaceText, CostsAreThoseOfTheClassElseOfTheTypeElseEstimated) {
  const GraphText text = parse_text(
      "berth-graph 1\n"
      "op Make () -> (y)\n"
      "kernel Make on GPU\n"
      "class fast on GPU\n"
      "device \"GPU:0\" class fast\n"
      "device \"GPU:1\"\n"
      "device CPU\n"
      "node a = Make() -> float32[4] time GPU 3, fast 2 bytes 5\n"
      "node b = Make() -> float32[4]\n");
  const std::vector<std::string> names = devices_of_text(text);
  const PlaceOptions options = place_options(text, names);
  const CostTable c = costs_of_text(text, machine_of(text, names), options);
  EXPECT_EQ(c.time(0, 0).us, 2);
  EXPECT_EQ(c.time(0, 1).us, 3);
  EXPECT_EQ(c.time(0, 2).us, kNoKernel);
  EXPECT_EQ(c.time(1, 2).us, kNoKernel);
  EXPECT_EQ(c.time(1, 0).origin, CostOrigin::kEstimated);
  EXPECT_EQ(c.bytes_of({0, 0}), 5);
  EXPECT_EQ(c.bytes_of({1, 0}), 16);
}

// Every group of the chain is part of the conflict between its ends.
TEST(PlaceText, AConflictMayBeLong) {
  constexpr int kNodes = 30000;
  std::string lines = "berth-graph 1\nop Make () -> (y)\nkernel Make on GPU\n";
  for (int i = 0; i < kNodes; ++i) {
    const char* on = i == 0            ? " on \"/GPU:0\""
                     : i == kNodes - 1 ? " on \"/GPU:1\""
                                       : "";
    lines += fmt::format("node n{} = Make() -> int32[]{} with g{}, g{}\n", i,
                         on, i, i + 1);
  }
  GraphText text = parse_text(lines);
  PlaceOptions options = place_options(text, devices_of_list("GPUx2"));
  options.soft = config::SoftPlacement::kError;
  try {
    place(text.graph, options);
    FAIL() << "placed";
  } catch (const PlaceInvalid& e) {
    EXPECT_EQ(e.conflict().constraints.size(), kNodes + 1u);
  }
}

}  // namespace
}  // namespace berth
