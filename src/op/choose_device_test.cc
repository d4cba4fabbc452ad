// The eager placement rules, as a pure function.

#include "op/choose_device.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "op/op_registry.h"

namespace berth {
namespace {

const OpDef& op_of(const char* kind) {
  static const auto make = [](const std::string& kind) {
    OpBuilder b(nullptr, "Op");
    if (kind == "resource") {
      b.writes_variable("v").input("x").stateful();
    } else {
      b.any_inputs("x", kAnyType).output("y");
    }
    if (kind == "metadata") b.metadata();
    if (kind == "random") b.random();
    b.infer([](InferContext&) {}).not_differentiable();
    return b.detach();
  };
  static std::map<std::string, std::shared_ptr<const OpDef>> made;
  auto& op = made[kind];
  if (!op) op = make(kind);
  return *op;
}

// A call on worker 0 with two GPUs and two CPUs, and worker 1 with a CPU:
//   0 GPU:0, 1 GPU:1, 2 CPU:0, 3 CPU:1, 4 worker:1/CPU:0
struct Call {
  const char* kind = "plain";
  const char* request = nullptr;
  std::vector<ChoiceInput> inputs = {};
  std::set<int> able = {0, 1, 2, 3, 4};
  bool soft = true;
  DType dtype = float32;
};

template <class Fn>
auto with(const Call& c, Fn&& fn) {
  static const std::vector<DeviceName> names = [] {
    std::vector<DeviceName> list;
    for (const char* n : {"/job:localhost/replica:0/task:0/GPU:0",
                          "/job:localhost/replica:0/task:0/GPU:1",
                          "/job:localhost/replica:0/task:0/CPU:0",
                          "/job:localhost/replica:0/task:0/CPU:1",
                          "/job:worker/replica:0/task:1/CPU:0"}) {
      list.push_back(DeviceName::parse(n));
    }
    return list;
  }();
  std::vector<const DeviceName*> devices;
  for (const DeviceName& n : names) devices.push_back(&n);
  const DeviceName request =
      c.request ? DeviceName::parse(c.request) : DeviceName();
  const DeviceCall call{.op = &op_of(c.kind),
                        .dtype = c.dtype,
                        .inputs = c.inputs,
                        .request = c.request ? &request : nullptr,
                        .devices = devices,
                        .can_run = [&](int i) { return c.able.contains(i); },
                        .soft = c.soft};
  return fn(call);
}

// "request 1", "none -1".
std::string choice(const Call& c) {
  return with(c, [](const DeviceCall& call) {
    const DeviceChoice choice = choose_device(call);
    return std::string(id_of(choice.rule)) + " " +
           std::to_string(choice.position);
  });
}

std::string reason(const Call& c) {
  return with(c, [](const DeviceCall& call) {
    return reason_of(call, choose_device(call));
  });
}

ChoiceFailure failure(const Call& c) {
  return with(c, [](const DeviceCall& call) {
    EXPECT_EQ(choose_device(call).position, -1);
    return failure_of(call, " (model.cc:41)");
  });
}

const ChoiceInput kOnGpu1 = {float32, 1, 1000};
const ChoiceInput kFewOnCpu = {int32, 2, 64};

TEST(ChooseDevice, NobodyAskedTakesTheFirstDeviceWithAKernel) {
  EXPECT_EQ(choice({}), "default 0");
  EXPECT_EQ(choice({.able = {1, 2}}), "default 1");
  EXPECT_EQ(choice({.able = {4}}), "default 4");
  // Where float inputs live plays no role.
  EXPECT_EQ(choice({.inputs = {kOnGpu1}}), "default 0");
  EXPECT_EQ(choice({.able = {}}), "none -1");
  // Job and task alone are not a request, but bind.
  EXPECT_EQ(choice({.request = "/job:worker"}), "default 4");
  EXPECT_EQ(choice({.request = "/job:localhost", .able = {4}}), "none -1");
}

TEST(ChooseDevice, ARequestTakesTheFirstMatchWithAKernel) {
  EXPECT_EQ(choice({.request = "/GPU:1"}), "request 1");
  EXPECT_EQ(choice({.request = "/CPU:1"}), "request 3");
  EXPECT_EQ(choice({.request = "GPU"}), "request 0");
  EXPECT_EQ(choice({.request = "GPU", .able = {1, 2}}), "request 1");
  EXPECT_EQ(choice({.request = "/job:worker/CPU:0"}), "request 4");
  EXPECT_EQ(reason({.request = "/GPU:1"}),
            "asked for by device(\"/device:GPU:1\")");
}

TEST(ChooseDevice, SoftPlacementDropsTypeAndNumberAndKeepsTheTask) {
  EXPECT_EQ(choice({.request = "/GPU:7"}), "fallback 0");
  EXPECT_EQ(reason({.request = "/GPU:7"}),
            "no device matches \"/device:GPU:7\"");
  EXPECT_EQ(choice({.request = "/GPU:1", .able = {2, 3}, .dtype = int32}),
            "fallback 2");
  EXPECT_EQ(reason({.request = "/GPU:1", .able = {2, 3}, .dtype = int32}),
            "no kernel for int32 on GPU:1");
  EXPECT_EQ(reason({.request = "GPU", .able = {2}}),
            "no kernel for float32 on GPU:0, GPU:1");
  EXPECT_EQ(choice({.request = "/job:worker/GPU:0"}), "fallback 4");
  EXPECT_EQ(choice({.request = "/job:worker/GPU:0", .able = {0, 1, 2}}),
            "none -1");
  EXPECT_EQ(choice({.request = "/job:ps/CPU:0"}), "none -1");
}

TEST(ChooseDevice, WithoutSoftPlacementARequestIsMetOrFails) {
  EXPECT_EQ(choice({.request = "/GPU:1", .soft = false}), "request 1");
  EXPECT_EQ(choice({.request = "/GPU:7", .soft = false}), "none -1");
  EXPECT_EQ(choice({.request = "/GPU:1", .able = {0, 2}, .soft = false}),
            "none -1");
  // Nothing was asked for, so nothing is broken.
  EXPECT_EQ(choice({.able = {2}, .soft = false}), "default 2");
}

TEST(ChooseDevice, AVariableBindsAgainstARequest) {
  const ChoiceInput handle = {resource, 1, 10};
  EXPECT_EQ(choice({.kind = "resource", .inputs = {handle, kOnGpu1}}),
            "resource 1");
  const Call against = {
      .kind = "resource", .request = "/CPU:0", .inputs = {kOnGpu1, handle}};
  EXPECT_EQ(choice(against), "resource 1");
  EXPECT_EQ(reason(against), "the variable of input 1 lives there");
  with(against, [](const DeviceCall& call) {
    EXPECT_TRUE(choose_device(call).request_ignored);
  });
  with({.kind = "resource", .request = "/GPU:1", .inputs = {handle}},
       [](const DeviceCall& call) {
         EXPECT_FALSE(choose_device(call).request_ignored);
       });
  const ChoiceFailure f =
      failure({.kind = "resource", .inputs = {handle}, .able = {0, 2}});
  EXPECT_EQ(f.code, errors::Code::kUnimplemented);
  EXPECT_EQ(f.message,
            "Op: no kernel for float32 on GPU:1, where its variable lives "
            "(model.cc:41); these devices have one: GPU:0, CPU:0");
}

TEST(ChooseDevice, AFewIntegersOnACpuStayThere) {
  EXPECT_EQ(choice({.inputs = {kFewOnCpu}}), "host-integers 2");
  EXPECT_EQ(choice({.inputs = {{int64, 3, 1}, {int32, 2, 1}}}),
            "host-integers 3");
  EXPECT_EQ(choice({.inputs = {{int32, 2, 65}}}), "default 0");
  EXPECT_EQ(choice({.inputs = {{int32, 1, 4}}}), "default 0");
  EXPECT_EQ(choice({.inputs = {{uint8, 2, 4}}}), "default 0");
  EXPECT_EQ(choice({.inputs = {kFewOnCpu, {float32, 2, 1}}}), "default 0");
  EXPECT_EQ(choice({.inputs = {}}), "default 0");
  EXPECT_EQ(choice({.kind = "random", .inputs = {kFewOnCpu}}), "default 0");
  EXPECT_EQ(choice({.inputs = {kFewOnCpu}, .able = {0, 1}}), "default 0");
  EXPECT_EQ(choice({.request = "/GPU:1", .inputs = {kFewOnCpu}}), "request 1");
  EXPECT_EQ(choice({.request = "/job:localhost", .inputs = {kFewOnCpu}}),
            "host-integers 2");
  // They are in another job than the one asked for.
  EXPECT_EQ(choice({.request = "/job:worker", .inputs = {kFewOnCpu}}),
            "default 4");
}

TEST(ChooseDevice, MetadataGoesWithItsInput) {
  EXPECT_EQ(choice({.kind = "metadata", .inputs = {kOnGpu1}}), "metadata 1");
  EXPECT_EQ(
      choice({.kind = "metadata", .request = "/CPU:0", .inputs = {kOnGpu1}}),
      "request 2");
  EXPECT_EQ(choice({.kind = "metadata", .inputs = {kOnGpu1}, .able = {2}}),
            "default 2");
}

TEST(ChooseDevice, TextLivesOnTheHost) {
  EXPECT_EQ(choice({.inputs = {{string_, 2, 4}}, .dtype = string_}),
            "host-strings 2");
  EXPECT_EQ(choice({.inputs = {{float32, 0, 4}, {string_, 2, 4}}}),
            "host-strings 2");
}

TEST(ChooseDevice, FailuresNameTheRequestTheTypesAndTheDevices) {
  const ChoiceFailure none =
      failure({.request = "/GPU:7", .able = {2}, .soft = false});
  EXPECT_EQ(none.code, errors::Code::kInvalidArgument);
  EXPECT_EQ(none.message,
            "Op: could not satisfy device specification \"/device:GPU:7\" "
            "(model.cc:41): no device matches it and soft placement is off; "
            "expected one of GPU:0, GPU:1, CPU:0, CPU:1, worker:1/CPU:0; types "
            "with a kernel for float32: CPU");
  const ChoiceFailure kernel =
      failure({.request = "/GPU:1", .able = {2}, .soft = false});
  EXPECT_EQ(kernel.code, errors::Code::kUnimplemented);
  EXPECT_EQ(kernel.message,
            "Op: no kernel for float32 on GPU:1 (asked for by "
            "device(\"/device:GPU:1\")) (model.cc:41); these devices have one: "
            "CPU:0");
  const ChoiceFailure nowhere = failure({.able = {}});
  EXPECT_EQ(nowhere.code, errors::Code::kUnimplemented);
  EXPECT_NE(nowhere.message.find("no device has one"), std::string::npos);
}

}  // namespace
}  // namespace berth
