#include "place/place_text.h"

#include <gtest/gtest.h>

#include "berth/errors.h"
#include "op/kernel.h"

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
  for (const char* list : {"", "CPUx0", "CPUxx", "CPU[", "CPUx60,GPUx60", ",",
                           "CPU,,GPU", "GPUx61"}) {
    EXPECT_THROW(devices_of_list(list), errors::InvalidArgument) << list;
  }
  EXPECT_EQ(devices_of_list("CPUx32,GPUx32").size(), 64u);
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
  // One without: wherever the engine has it, and everywhere on CPU and GPU
  // when nothing is known about that.
  EXPECT_TRUE(d[0].runs(add, float32));
  EXPECT_TRUE(d[1].runs(add, float32));
  EXPECT_FALSE(d[2].runs(add, float32));
  EXPECT_EQ(d[0].priority(add, float32), 0);
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

}  // namespace
}  // namespace berth
