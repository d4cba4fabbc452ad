// TensorFlow's placer and colocation graph, rule by rule; the numbers are those
// of docs/placement.md. Expected devices follow from the rules, not from a run.

#include <gtest/gtest.h>

#include <random>

#include "op/select_device.h"
#include "place/graphs_testing.h"

namespace berth {
namespace {

using namespace place_tests;  // NOLINT

const char kRulesOps[] = R"(op Touch (v: resource write) -> (y)
op CpuTouch (v: resource write) -> (y)
op Ref () -> (r ref)
op TakeRef (r: any ref) -> (y)
op TakeValue (r: any) -> (y)
op NumbersDataset () -> (d)
op Words () -> (d host)
op MapDatasetV2 (d: variant) -> (d)
op Prefer (x: any) -> (y)
op PreferGpu (x: any) -> (y)
op Identity3 (x: any) -> (y)
op MyCall (a: any optional) -> (r...)
op Effect (x: any) -> ()
)";

PlaceOptions tf(config::SoftPlacement soft = config::SoftPlacement::kWarn) {
  PlaceOptions options = gpus_and_cpu();
  for (PlaceDevice& d : options.devices) {
    if (!has(d.name.text(), "GPU")) continue;
    d.runs = [runs = d.runs](const OpDef& op, DType t) {
      return op.name() != "CpuTouch" && runs(op, t);
    };
  }
  options.policy = PlacePolicy::kTensorFlow;
  options.soft = soft;
  return options;
}
constexpr auto kError = config::SoftPlacement::kError;

std::string placed_text(const std::string& body,
                        const PlaceOptions& options = tf()) {
  return placed(kRulesOps + body, options).text;
}
std::string failure(const std::string& body,
                    const PlaceOptions& options = tf()) {
  return error_of<errors::Error>(kRulesOps + body, options);
}

const char kCpu[] = "at \"/job:localhost/replica:0/task:0/device:CPU:0\"";
const std::string kGpu = "at \"/job:localhost/replica:0/task:0/device:GPU:0\"";

TEST(TensorFlowRules, Rule1AssignedNodesStayAndKernelsMustExist) {
  EXPECT_EQ(placed_text(arg("x") + node("a", "One(x:0)", kCpu) +
                        node("b", "One(a:0)")),
            "x CPU:0\na CPU:0\nb GPU:0\n");
  EXPECT_PRED2(has, failure(arg("x") + node("a", "Nowhere(x:0)")),
               "no device has one");
  EXPECT_PRED2(has,
               failure(arg("x") + node("a", "One(x:0)",
                                       "at \"/job:localhost/replica:0/task:0/"
                                       "device:GPU:9\"")),
               "does not match any device");
  EXPECT_PRED2(has, failure(handle("v") + node("a", "CpuTouch(v:0)", kGpu)),
               "has no kernel of CpuTouch for float32; devices that have one: "
               "CPU:0");
  EXPECT_PRED2(has,
               failure(arg("x") + node("a", "One(x:0)", "at \"/device:GPU\"")),
               "matches several devices");
}

TEST(TensorFlowRules, MetadataFollowsAnAssignedGenerator) {
  // Make is placed in the second pass, unless it was assigned.
  EXPECT_EQ(placed_text(node("m", "Make()", kCpu) + node("s", "Size2(m:0)")),
            "m CPU:0\ns CPU:0\n");
  EXPECT_EQ(placed_text(node("m", "Make()", kCpu) + node("s", "Identity(m:0)") +
                        node("o", "One(s:0)")),
            "m CPU:0\ns CPU:0\no GPU:0\n");
}

TEST(TensorFlowRules, SoftGroupsMoveVariablesToAssignedNodes) {
  const std::string group = handle("v", "on CPU with g") + arg("x") +
                            node("a", "One(x:0)", kGpu + " with g");
  EXPECT_EQ(placed_text(group), "v GPU:0\nx GPU:0\na GPU:0\n");
  EXPECT_PRED2(has, failure(group, tf(kError)), "contradict each other");
}

TEST(TensorFlowRules, Rule2RequestsOfGeneratorsOfResourcesAreNotOverridden) {
  EXPECT_EQ(placed_text(handle("v", "on CPU") +
                        node("t", "Touch(v:0)", "on \"/GPU:1\"")),
            "v CPU:0\nt CPU:0\n");
  EXPECT_EQ(placed_text(node("r", "Ref()", "on CPU") +
                        node("t", "TakeRef(r:0)", "on \"/GPU:1\"")),
            "r CPU:0\nt CPU:0\n");
}

TEST(TensorFlowRules, Rule3EdgesColocateAndTheSourceWins) {
  // The source requests nothing: the destination's request holds for both.
  EXPECT_EQ(placed_text(handle("v") + node("t", "Touch(v:0)", "on CPU")),
            "v CPU:0\nt CPU:0\n");
  EXPECT_EQ(placed_text(node("r", "Ref()") +
                        node("t", "TakeRef(r:0)", "on \"/GPU:1\"")),
            "r GPU:1\nt GPU:1\n");
  // Reading the value of a reference binds nothing.
  EXPECT_EQ(placed_text(node("r", "Ref()", "on \"/GPU:1\"") +
                        node("t", "TakeValue(r:0)")),
            "r GPU:1\nt GPU:0\n");
  EXPECT_EQ(placed_text("node d = NumbersDataset() -> variant[] on \"/GPU:1\"\n"
                        "node m = MapDatasetV2(d:0) -> variant[] on CPU\n"
                        "node n = MapDatasetV2(m:0) -> variant[]\n"),
            "d GPU:1\nm GPU:1\nn GPU:1\n");
  // Partial names are merged.
  EXPECT_EQ(placed_text(handle("v", "on GPU") +
                        node("t", "Touch(v:0)", "on \"/job:localhost/GPU:1\"")),
            "v GPU:1\nt GPU:1\n");
  EXPECT_PRED2(has,
               failure(handle("v", "on \"/GPU:1\"") + handle("m", "on CPU") +
                       effect("u", "Both(v:0, m:0)")),
               "contradict each other");
}

TEST(TensorFlowRules, Rule4BodiesOfCallsSayWhereReturnedResourcesAre) {
  const std::string function = "function f () -> (resource(float32)[4]) {\n" +
                               handle("v", "on \"/GPU:1\"") + "return v:0\n}\n";
  // (The call has no input and one output: it goes with its consumer.)
  EXPECT_EQ(placed_text(function +
                        "node c = MyCall() {f = @f} -> resource(float32)[4]\n" +
                        node("t", "Touch(c:0)")),
            "c GPU:1\nt GPU:1\n");
  // The call's request applies inside the body.
  const std::string silent = "function f () -> (resource(float32)[4]) {\n" +
                             handle("v") + "return v:0\n}\n";
  EXPECT_EQ(placed_text(silent +
                        "node c = MyCall() {f = @f} -> resource(float32)[4] "
                        "on \"/GPU:1\"\n" +
                        node("t", "Touch(c:0)", "on CPU")),
            "c GPU:1\nt GPU:1\n");
  // A resource that is passed through stays with its variable.
  const std::string through =
      "function f (resource(float32)[4]) -> (resource(float32)[4]) {\n"
      "node a = _Arg() {index = 0, dtype = resource, shape = shape[4]} -> "
      "resource(float32)[4]\nreturn a:0\n}\n";
  EXPECT_EQ(placed_text(through + handle("v", "on CPU") +
                        "node c = MyCall(v:0) {f = @f} -> "
                        "resource(float32)[4]\n" +
                        node("t", "Touch(c:0)")),
            "v CPU:0\nc GPU:0\nt CPU:0\n");
}

TEST(TensorFlowRules, Rule4BodiesAreReadOnceHoweverOftenTheyAreCalled) {
  // Two calls per body: 2^20 paths.
  std::string text = "function f0 () -> (resource(float32)[4]) {\n" +
                     handle("v", "on CPU") + "return v:0\n}\n";
  for (int i = 1; i <= 20; ++i) {
    text += fmt::format(
        "function f{} () -> (resource(float32)[4]) {{\n"
        "node a = MyCall() {{f = @f{}}} -> resource(float32)[4]\n"
        "node b = MyCall() {{f = @f{}}} -> resource(float32)[4]\n"
        "return b:0\n}}\n",
        i, i - 1, i - 1);
  }
  EXPECT_EQ(
      placed_text(text +
                  "node c = MyCall() {f = @f20} -> resource(float32)[4]\n" +
                  node("t", "Touch(c:0)")),
      "c CPU:0\nt CPU:0\n");
}

TEST(TensorFlowRules, Rule4CallsThatReturnNoResourceAreNotInspected) {
  EXPECT_EQ(
      placed_text("function f (resource(float32)[4]) -> (float32[4])\n" +
                  handle("v", "on CPU") + node("c", "MyCall(v:0) {f = @f}")),
      "v CPU:0\nc GPU:0\n");
}

TEST(TensorFlowRules, Rule5GroupsShareADevice) {
  EXPECT_EQ(placed_text(arg("x") + node("a", "One(x:0)", "on \"/GPU:1\"") +
                        node("b", "One(x:0)", "with \"loc:@a\"") +
                        node("c", "CpuOnly(x:0)", "with g") +
                        node("d", "One(x:0)", "with g")),
            "x GPU:0\na GPU:1\nb GPU:1\nc CPU:0\nd CPU:0\n");
  const std::string unlike = arg("x") + node("a", "One(x:0)", "on \"/GPU:1\"") +
                             node("b", "One(x:0)", "on CPU with a");
  EXPECT_PRED2(has, failure(unlike, tf(kError)), "contradict each other");
  // Soft: type and number are dropped where they differ.
  EXPECT_EQ(placed_text(unlike), "x GPU:0\na GPU:0\nb GPU:0\n");
  // Only the number differs: the type stays.
  EXPECT_EQ(placed_text(arg("x") + node("a", "NotGpu0(x:0)", "on \"/GPU:1\"") +
                        node("b", "One(x:0)", "on \"/GPU:0\" with a")),
            "x GPU:1\na GPU:1\nb GPU:1\n");
}

TEST(TensorFlowRules, Rule5AGroupThatCannotBeIsIgnoredWhenSoft) {
  PlaceOptions options = tf();
  options.devices[2].runs = [](const OpDef& op, DType) {
    return op.name() != "NotGpu0";
  };
  options.devices[1].runs = [](const OpDef& op, DType) {
    return op.name() != "CpuOnly";
  };
  const std::string body = arg("x") + node("a", "NotGpu0(x:0)") +
                           node("b", "CpuOnly(x:0)", "with a");
  const Result r = placed(kRulesOps + body, options);
  EXPECT_EQ(r.text, "x GPU:0\na GPU:1\nb CPU:0\n");
  ASSERT_EQ(r.placement.notes.size(), 1u);
  EXPECT_EQ(r.placement.notes[0].id, "colocation-ignored");
  options.soft = kError;
  EXPECT_PRED2(has, failure(body, options), "contradict each other");
}

PlaceOptions with_priorities(int cpu_a, int gpu_a, int cpu_b, int gpu_b) {
  PlaceOptions options = tf();
  for (PlaceDevice& d : options.devices) {
    const bool gpu = has(d.name.text(), "GPU");
    d.priority = [=](const OpDef& op, DType) {
      if (op.name() == "Prefer") return gpu ? gpu_a : cpu_a;
      if (op.name() == "PreferGpu") return gpu ? gpu_b : cpu_b;
      return 0;
    };
  }
  return options;
}

TEST(TensorFlowRules, Rule6PrioritiesOfASetAreMerged) {
  const std::string body = arg("x") + node("a", "Prefer(x:0)", "with g") +
                           node("b", "PreferGpu(x:0)", "with g");
  const auto of = [&](int cpu_a, int gpu_a, int cpu_b, int gpu_b) {
    const auto options = with_priorities(cpu_a, gpu_a, cpu_b, gpu_b);
    return placed_text(body, options).substr(8);
  };
  EXPECT_EQ(of(0, 0, 0, 0), "a GPU:0\nb GPU:0\n");
  EXPECT_EQ(of(10, 1, 0, 0), "a CPU:0\nb CPU:0\n");  // one side prefers
  EXPECT_EQ(of(0, 0, 10, 1), "a CPU:0\nb CPU:0\n");
  EXPECT_EQ(of(5, 5, 10, 1), "a GPU:0\nb GPU:0\n");  // equal: by types
  EXPECT_EQ(of(10, 1, 3, 2), "a CPU:0\nb CPU:0\n");  // both, which agree
  EXPECT_EQ(of(10, 1, 1, 2), "a GPU:0\nb GPU:0\n");  // both, which disagree
}

TEST(TensorFlowRules, Rule6PriorityPicksAmongTheDevicesOfARequest) {
  EXPECT_EQ(
      placed_text(arg("x") + node("a", "Prefer(x:0)", "on \"/job:localhost\""),
                  with_priorities(10, 1, 0, 0)),
      "x CPU:0\na CPU:0\n");
  EXPECT_EQ(placed_text(arg("x") + node("a", "Prefer(x:0)", "on \"/GPU:1\""),
                        with_priorities(10, 1, 0, 0)),
            "x GPU:1\na GPU:1\n");
}

TEST(TensorFlowRules, Rule7VariantsOfHostDataPinToTheCpu) {
  EXPECT_EQ(placed_text("node d = Words() -> variant[]\n" +
                        node("m", "TakeValue(d:0)")),
            "d CPU:0\nm CPU:0\n");
  EXPECT_EQ(placed_text("node d = NumbersDataset() -> variant[]\n" +
                        node("m", "TakeValue(d:0)")),
            "d GPU:0\nm GPU:0\n");
}

TEST(TensorFlowRules, Rule8RequestsAreFilteredByKernelsAndRelaxed) {
  EXPECT_EQ(placed_text(arg("x") + node("a", "NotGpu0(x:0)", "on GPU")),
            "x GPU:1\na GPU:1\n");
  const Result r =
      placed(kRulesOps + arg("x") + node("a", "CpuOnly(x:0)", "on \"/GPU:1\"") +
                 node("b", "One(a:0)", "on \"/GPU:7\""),
             tf());
  EXPECT_EQ(r.text, "x CPU:0\na CPU:0\nb GPU:0\n");
  ASSERT_EQ(r.placement.fallbacks.size(), 2u);
  EXPECT_EQ(r.placement.fallbacks[0].reason, "no kernel for float32 on GPU:1");
  EXPECT_EQ(r.placement.fallbacks[1].reason, "there is no \"/GPU:7\"");
  EXPECT_PRED2(has,
               failure(arg("x") + node("a", "CpuOnly(x:0)", "on \"/GPU:1\""),
                       tf(kError)),
               "no kernel for float32 on GPU:1");
  // Job and task are never dropped.
  EXPECT_PRED2(
      has,
      failure(arg("x") + node("a", "One(x:0)", "on \"/job:ps/task:1/GPU:0\"")),
      "no such device exists");
}

TEST(TensorFlowRules, Rule8AResourcesDeviceIsGivenUpLast) {
  // The type of the resource is kept while there is a choice ...
  EXPECT_EQ(placed_text(handle("v", "on GPU") +
                        node("t", "Touch(v:0)", "on \"/device:GPU:5\"")),
            "v GPU:0\nt GPU:0\n");
  // ... and dropped when there is none.
  const Result r = placed(
      kRulesOps + handle("v", "on \"/GPU:1\"") + node("t", "CpuTouch(v:0)"),
      tf());
  EXPECT_EQ(r.text, "v CPU:0\nt CPU:0\n");
  ASSERT_EQ(r.placement.fallbacks.size(), 1u);
  EXPECT_EQ(r.placement.fallbacks[0].node, 0);
  EXPECT_PRED2(has, r.placement.fallbacks[0].reason, "CpuTouch \"t\"");
  EXPECT_PRED2(
      has,
      failure(handle("v", "on \"/GPU:1\"") + node("t", "CpuTouch(v:0)"),
              tf(kError)),
      "CpuTouch \"t\" has a kernel for float32 on CPU:0 alone");
}

TEST(TensorFlowRules, Rule9MetadataGoesWithItsInput) {
  EXPECT_EQ(placed_text(arg("x") + node("a", "One(x:0)", "on \"/GPU:1\"") +
                        node("s", "Size2(a:0)")),
            "x GPU:1\na GPU:1\ns GPU:1\n");
  // An input that is a generator has no device yet.
  EXPECT_EQ(placed_text(node("c", "Make()", "on \"/GPU:1\"") +
                        node("s", "Size2(c:0)")),
            "c GPU:1\ns GPU:0\n");
}

TEST(TensorFlowRules, Rule9IdentityGoesWithItsInputBetweenEqualRequests) {
  const std::string a = arg("x") + node("a", "CpuOnly(x:0)");
  const auto identity = [](const std::string& more) {
    return node("i", "Identity(a:0)", more);
  };
  EXPECT_EQ(placed_text(a + identity("") + node("b", "One(i:0)")),
            "x CPU:0\na CPU:0\ni CPU:0\nb GPU:0\n");
  // Two consumers, a control edge, or another request: by default.
  EXPECT_EQ(placed_text(a + identity("") + node("b", "Two(i:0, i:0)")),
            "x CPU:0\na CPU:0\ni GPU:0\nb GPU:0\n");
  EXPECT_EQ(placed_text(a + identity("") + node("b", "One(i:0)", "on CPU")),
            "x CPU:0\na CPU:0\ni GPU:0\nb CPU:0\n");
}

TEST(TensorFlowRules, Rule9GeneratorsGoWithTheirConsumers) {
  EXPECT_EQ(placed_text(node("c", "Make()") + node("d", "Make()") +
                        node("a", "Two(c:0, d:0)", "on \"/GPU:1\"") +
                        node("b", "One(d:0)", "on CPU")),
            "c GPU:1\nd GPU:0\na GPU:1\nb CPU:0\n");
  // Control edges count as edges.
  EXPECT_EQ(
      placed_text(node("c", "Make()") + node("a", "One(c:0)", "on \"/GPU:1\"") +
                  node("b", "One(a:0, ^c)", "on CPU")),
      "c GPU:0\na GPU:1\nb CPU:0\n");
  // Random generators too: TensorFlow treats them alike.
  EXPECT_EQ(
      placed_text(node("r", "Draw()") + node("a", "One(r:0)", "on \"/GPU:1\"")),
      "r GPU:1\na GPU:1\n");
  // Its own request holds if it excludes the consumers' device.
  EXPECT_EQ(placed_text(node("c", "Make()", "on CPU") +
                        node("a", "One(c:0)", "on \"/GPU:1\"")),
            "c CPU:0\na GPU:1\n");
}

TEST(TensorFlowRules, Rule10TheFirstDeviceIsByTypeTaskAndNameAsAString) {
  PlaceOptions options;
  options.policy = PlacePolicy::kTensorFlow;
  for (const char* d :
       {"/job:a/task:0/device:CPU:0", "/job:a/task:0/device:GPU:2",
        "/job:a/task:0/device:GPU:10", "/job:A/task:0/device:GPU:0"}) {
    options.devices.push_back({d});
  }
  const Result r =
      placed(kRulesOps + arg("x") + node("a", "One(x:0)"), options);
  EXPECT_EQ(r.graph[1].assigned, "/job:a/replica:0/task:0/device:GPU:10");
  EXPECT_EQ(r.placement.device[1], 2);
  options.policy = PlacePolicy::kBerth;
  const Result b =
      placed(kRulesOps + arg("x") + node("a", "One(x:0)"), options);
  EXPECT_EQ(b.placement.device[1], 0);
}

TEST(TensorFlowRules, FollowersMeanNothing) {
  EXPECT_EQ(placed_text(arg("x") + node("f", "One(x:0)", "on \"/GPU:1\"") +
                        node("g", "One(f:0)", "follows f")),
            "x GPU:1\nf GPU:1\ng GPU:0\n");
}

// The rule on masks is the rule of op/select_device.h.
TEST(TensorFlowRules, RequestsPickWhatSelectDevicePicks) {
  std::mt19937 rng(3);
  PlaceOptions options;
  std::vector<DeviceName> names;
  for (const char* job : {"a", "b"}) {
    for (const char* device : {"GPU:0", "GPU:1", "CPU:0", "CPU:1"}) {
      options.devices.push_back(
          {fmt::format("/job:{}/replica:0/task:0/device:{}", job, device)});
      names.push_back(options.devices.back().name.name());
    }
  }
  std::vector<const DeviceName*> listed;
  for (const DeviceName& n : names) listed.push_back(&n);
  for (int round = 0; round < 500; ++round) {
    std::string request;
    if (rng() % 2) request += rng() % 2 ? "/job:a" : "/job:b";
    if (rng() % 3) {
      request += rng() % 2 ? "/device:GPU" : "/device:CPU";
      request += fmt::format(
          ":{}", rng() % 4 ? std::to_string(rng() % 3) : std::string("*"));
    }
    if (request.empty()) continue;
    const auto mask = static_cast<uint32_t>(1 + rng() % 255);
    for (size_t d = 0; d < options.devices.size(); ++d) {
      options.devices[d].runs = [ok = mask >> d & 1](const OpDef&, DType) {
        return ok != 0;
      };
    }
    options.soft = rng() % 2 ? kError : config::SoftPlacement::kSilent;
    const SelectedDevice expected = select_device(
        DeviceName::parse(request), std::span<const DeviceName* const>(listed),
        options.soft != kError, [&](int p) { return mask >> p & 1; });
    Graph g = parse_graph(kHead + arg("x") +
                          node("a", "One(x:0)", "on \"" + request + "\""));
    try {
      EXPECT_EQ(place(g, options).device[1], expected.position) << request;
    } catch (const PlaceFailure&) {
      EXPECT_EQ(expected.position, -1) << request;
    }
  }
}

}  // namespace
}  // namespace berth
