// Readers of the public formats: the problem they make of a file, and their
// message for a bad one.

#include "cli/planner/formats.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/errors.h"
#include "cli/planner/splits_testing.h"
#include "planner/cluster.h"
#include "planner/planner.h"

namespace berth {
namespace {

// Two ops of one colour class around one that stays on the CPU.
const char kSmall[] = R"({
  "maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 1,
  "nodes": [
    {"id": 7, "name": "a", "supportedOnFpga": 1, "cpuLatency": 4,
     "fpgaLatency": 2.5, "isBackwardNode": 0, "colorClass": 3, "size": 60.0},
    {"id": 5, "name": "b", "supportedOnFpga": false, "cpuLatency": 1.0,
     "fpgaLatency": 1.0, "isBackwardNode": false, "size": 10},
    {"id": 9, "name": "c", "supportedOnFpga": true, "cpuLatency": 8.0,
     "fpgaLatency": 3, "isBackwardNode": true, "colorClass": 3}],
  "edges": [
    {"sourceId": 7, "destId": 5, "cost": 0.5, "size": 12.0},
    {"sourceId": 7, "destId": 9, "cost": 0.5},
    {"sourceId": 7, "destId": 9, "cost": 0.5},
    {"sourceId": 5, "destId": 9, "cost": 0.25}]
})";

std::string with(std::string text, const std::string& old,
                 const std::string& now) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), now);
}

PlanProblem read(const std::string& text,
                 Objective objective = Objective::kThroughput) {
  return read_dnn_partitioning(text, "small.json", objective);
}

template <class Fn>
std::string message_of(Fn&& fn) {
  try {
    fn();
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "";
}

std::string failure(const std::string& text,
                    Objective objective = Objective::kThroughput) {
  return message_of([&] { read(text, objective); });
}

TEST(DnnPartitioning, ThroughputHasEachCpuAsADevice) {
  const PlanProblem p = read(kSmall);
  EXPECT_EQ(p.model, PlanModel::kLoad);
  ASSERT_EQ(p.num_devices(), 3);
  EXPECT_EQ(p.costs.devices[0].name, "ACC:0");
  EXPECT_EQ(p.costs.devices[2].name, "CPU:0");
  EXPECT_EQ(p.costs.devices[1].memory_limit, 100);
  EXPECT_EQ(p.costs.devices[2].memory_limit, 0);
  EXPECT_EQ(p.free_of_touch, (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(p.ids, (std::vector<int64_t>{7, 5, 9}));
  EXPECT_EQ(p.names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(p.group, (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(p.backward, (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(p.resident_bytes, (std::vector<double>{60, 10, 0}));
  EXPECT_EQ(p.touch_us, (std::vector<double>{0.5, 0.25, 0}));
  EXPECT_EQ(p.costs.bytes[0][0], 12);
  EXPECT_EQ(p.costs.time(0, 0).us, 2.5);
  EXPECT_EQ(p.costs.time(0, 2).us, 4);
  EXPECT_TRUE(std::isinf(p.costs.time(1, 0).us)) << "not supported there";
  ASSERT_EQ(p.graph.reads[2].size(), 2u) << "an edge given twice is one";
  EXPECT_EQ(p.graph.readers[0].size(), 2u);
  EXPECT_EQ(allowed_of_groups(p), (std::vector<DeviceSet>{7, 4}));
}

TEST(DnnPartitioning, LatencyIsThatOfStepsWithoutBackwardNodes) {
  const std::string text = with(kSmall, "\"isBackwardNode\": true,", "");
  const PlanProblem p = read(text, Objective::kLatency);
  EXPECT_EQ(p.model, PlanModel::kStep);
  ASSERT_EQ(p.num_devices(), 3);
  EXPECT_EQ(p.costs.devices[2].name, "CPU:0");
  EXPECT_TRUE(p.touch_us.empty());
  EXPECT_EQ(p.costs.link(0, 2).time_us(p.costs.bytes[0][0]), 0.5);
  EXPECT_EQ(p.costs.link(2, 0).time_us(p.costs.bytes[1][0]), 0.25);
  // a on ACC:0, 2.5; its copy to the CPU, 0.5; b, 1; its copy back, 0.25; c, 3.
  const Evaluation e = evaluate(p, {{0, 2, 0}, {0, 1, 2}});
  EXPECT_DOUBLE_EQ(e.value, 7.25);
  EXPECT_TRUE(e.violations.empty());
  EXPECT_EQ(failure(kSmall, Objective::kLatency),
            "small.json: nodes[2].isBackwardNode: found true, expected 0: the "
            "latency of this format is that of inference; training "
            "has throughput (--objective throughput)");
  EXPECT_EQ(failure(text),
            "small.json: nodes[2]: has no \"isBackwardNode\"; expected one "
            "beside colorClass, cpuLatency, fpgaLatency, id, name, "
            "supportedOnFpga");
}

// What the values hold, in bytes made of costs, is nothing beside a limit.
TEST(DnnPartitioning, LatencyKeepsLimitsAndPlansWithinThem) {
  const std::string text = with(kSmall, "\"isBackwardNode\": true,", "");
  const PlanProblem fits = read(text, Objective::kLatency);
  const PlanAnswer a = plan_placement(fits, {.moves = 1000, .threads = 1});
  EXPECT_EQ(a.status, PlanStatus::kPlanned);
  EXPECT_DOUBLE_EQ(a.value, 7.25);
  EXPECT_DOUBLE_EQ(a.bound.value, 7.25);
  const auto limit = static_cast<double>(fits.costs.devices[0].memory_limit);
  EXPECT_NEAR(a.evaluation.devices[0].bytes / limit, 0.6, 1e-5);
  // Both of the colour class must be on the CPU: 4, 1 and 8.
  const PlanProblem tight =
      read(with(text, "100.0", "59.5"), Objective::kLatency);
  EXPECT_DOUBLE_EQ(plan_placement(tight, {.moves = 1000, .threads = 1}).value,
                   13);
}

TEST(DnnPartitioning, OpsWithoutNamesOfTheirOwnAreNamedById) {
  const PlanProblem same = read(with(kSmall, "\"b\"", "\"a\""));
  EXPECT_EQ(same.names, (std::vector<std::string>{"7", "5", "c"}));
  const PlanProblem none = read(with(kSmall, "\"name\": \"b\",", ""));
  EXPECT_EQ(none.names, (std::vector<std::string>{"a", "5", "c"}));
  const PlanProblem clash =
      read(with(with(kSmall, "\"name\": \"b\",", ""), "\"c\"", "\"5\""));
  EXPECT_EQ(clash.names, (std::vector<std::string>{"7", "5", "9"}));
}

TEST(DnnPartitioning, WhatFitsExactlyFitsInAnyOrderOfAdding) {
  const PlanProblem p = read(
      R"({"maxSizePerFPGA": 0.6, "maxFPGAs": 1, "maxCPUs": 1, "nodes": [
      {"id": 0, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 1,
       "isBackwardNode": 0, "size": 0.1},
      {"id": 1, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 1,
       "isBackwardNode": 0, "size": 0.2},
      {"id": 2, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 1,
       "isBackwardNode": 0, "size": 0.3}], "edges": []})");
  const auto limit = static_cast<double>(p.costs.devices[0].memory_limit);
  const std::vector<double>& b = p.resident_bytes;
  EXPECT_LE(b[0] + b[1] + b[2], limit);
  EXPECT_LE(b[2] + b[1] + b[0], limit);
  EXPECT_GT(b[0] + b[1] + b[2], limit * (1 - 1e-9));
}

TEST(DnnPartitioning, LimitsTooSmallToScaleHoldNothing) {
  const PlanProblem p = read(with(kSmall, "100.0", "5e-324"));
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    if (p.resident_bytes[i] > 0) {
      EXPECT_EQ(p.allowed[i] & 1, 0u) << i;
    }
  }
}

TEST(DnnPartitioning, LimitsThatAreNoWholeBytesAreScaledExactly) {
  const PlanProblem p = read(with(kSmall, "100.0", "60.25"));
  EXPECT_EQ(p.costs.devices[0].memory_limit, 241);
  EXPECT_EQ(p.resident_bytes, (std::vector<double>{240, 40, 0}));
  EXPECT_EQ(read(with(kSmall, "100.0", "1e25")).costs.devices[0].memory_limit,
            0);
  const PlanProblem nothing = read(with(kSmall, "100.0", "0"));
  EXPECT_EQ(nothing.costs.devices[0].memory_limit, 0);
  EXPECT_EQ(nothing.allowed[0] & 7, 4u) << "60 bytes fit into none";
  EXPECT_EQ(nothing.allowed[2] & 7, 7u);
}

TEST(DnnPartitioning, BadFieldsAreNamedByTheirPath) {
  const struct {
    std::string old, now, expected;
  } cases[] = {
      {"\"cpuLatency\": 4,", "",
       "nodes[0]: has no \"cpuLatency\"; expected one beside colorClass, "},
      {"\"fpgaLatency\": 3,", "\"fpgaLatency\": \"3\",",
       "nodes[2].fpgaLatency: found \"3\", expected a number"},
      {"\"fpgaLatency\": 3,", "\"fpgaLatency\": -1,",
       "nodes[2].fpgaLatency: found -1, expected 0 to 1e+300"},
      {"\"fpgaLatency\": 3,", "\"fpgaLatency\": null,",
       "nodes[2]: has no \"fpgaLatency\"; expected one beside"},
      {"\"fpgaLatency\": 3,", "\"fpgaLatency\": 1e999,", "number overflow"},
      {"\"fpgaLatency\": 3,", "\"fpgaLatency\": NaN,",
       "line 9, column 21: this is no JSON"},
      {"\"id\": 9", "\"id\": 7",
       "nodes[2].id: found 7, expected an id that no node before has"},
      {"\"id\": 9", "\"id\": 9.5",
       "nodes[2].id: found 9.5, expected a whole number"},
      {"\"id\": 9", "\"id\": 18446744073709551615",
       "nodes[2].id: found 18446744073709551615, expected -9223372036854775808 "
       "to 9223372036854775807"},
      {"\"destId\": 5", "\"destId\": 6",
       "edges[0].destId: found 6, expected the id of a node"},
      {"\"destId\": 5", "\"destId\": 7",
       "edges[0].destId: found 7, expected another node than sourceId"},
      {"\"cost\": 0.5}", "\"cost\": 0.6}",
       "edges[1].cost: found 0.6, expected 0.5, as on the edges before from "
       "node"},
      {"\"maxFPGAs\": 2", "\"maxFPGAs\": 65",
       "maxFPGAs: found 65, expected 0 to 64 devices"},
      {"\"maxFPGAs\": 2", "\"maxFPGAs\": 64",
       "maxFPGAs: found 64, expected 1 to 64 devices with the CPUs, not 65"},
      {"\"maxFPGAs\": 2", "\"maxFPGAs\": 1.5",
       "maxFPGAs: found 1.5, expected a whole"},
      {"\"size\": 10", "\"size\": 1e19",
       "nodes[1].size: found 1e+19, expected 0 to 1e+18"},
      {"\"supportedOnFpga\": 1", "\"supportedOnFpga\": 2",
       "nodes[0].supportedOnFpga: found 2, expected true, false, 1 or 0"},
      {"\"colorClass\": 3", "\"colorClass\": []",
       "nodes[0].colorClass: found an array of 0, expected a whole number"},
      {"\"name\": \"b\"", "\"containedSubnodes\": [1]",
       "nodes[1].containedSubnodes: found an array of 1, expected a node "
       "without"},
      {"\"sourceId\": 5, \"destId\": 9", "\"sourceId\": 9, \"destId\": 7",
       "waits for itself"},
      {"\"nodes\": [", "\"nodes\": [3,",
       "nodes[0]: found 3, expected an object"},
      {"\"edges\": [", "\"edges\": {}, \"x\": [",
       "edges: found an object, expected an array"},
  };
  for (const auto& c : cases) {
    const std::string said = failure(with(kSmall, c.old, c.now));
    EXPECT_NE(said.find(c.expected), std::string::npos)
        << c.now << ": " << said;
  }
}

TEST(DnnPartitioning, TextsThatAreNoneAreRefused) {
  EXPECT_NE(failure(""), "");
  EXPECT_NE(failure("[]").find(
                "the document: found an array of 0, expected an object"),
            std::string::npos);
  EXPECT_NE(failure(std::string(1'000'000, '[')), "");
  EXPECT_NE(failure(std::string(300'000, '[') + std::string(300'000, ']')), "");
  EXPECT_NE(failure("{\"maxSizePerFPGA\": 1, \"maxFPGAs\": 1, \"maxCPUs\": 0, "
                    "\"nodes\": [], \"edges\": []}")
                .find("nodes: found an array of 0, expected at least one node"),
            std::string::npos);
}

TEST(Splits, NodesThatAreMissingFollowTheirColourClass) {
  const PlanProblem p = read(kSmall);
  const PlacePlan plan = read_split(
      p,
      R"({"cpus": [{"nodes": [5]}], "fpgas": [{"nodes": []}, {"nodes": [7]}]})",
      "s");
  EXPECT_EQ(plan.device, (std::vector<int32_t>{1, 2, 1}));
  EXPECT_EQ(plan.sequence, (std::vector<int32_t>{0, 1, 2}));
}

TEST(Splits, WhatIsWrittenReadsBack) {
  const PlanProblem p = read(kSmall);
  const PlacePlan plan{{1, 2, 1}, {0, 1, 2}};
  const PlacePlan back = read_split(p, split_text(p, plan), "s");
  EXPECT_EQ(back.device, plan.device);
}

TEST(Splits, BadOnesAreRefusedByName) {
  const PlanProblem p = read(kSmall);
  const auto says = [&](const char* text) {
    return message_of([&] { read_split(p, text, "s"); });
  };
  EXPECT_EQ(says("{\"fpgas\": []}"),
            "s: the document: has no \"cpus\"; expected one beside fpgas");
  EXPECT_EQ(says(R"({"cpus": [], "fpgas": [{"nodes": [7, 5, 8]}]})"),
            "s: fpgas[0].nodes[2]: found 8, expected the id of a node of "
            "\"small.json\"");
  EXPECT_EQ(says(R"({"cpus": [{"nodes": [7]}], "fpgas": [{"nodes": [7]}]})"),
            "s: fpgas[0].nodes[0]: found 7 again, expected each node once");
  EXPECT_EQ(says(R"({"cpus": [], "fpgas": [{"nodes": [7]}]})"),
            "s: the document: names neither node 5 (\"b\") nor one of its "
            "colour class; "
            "expected each node once");
  EXPECT_EQ(says(R"({"cpus": [{"nodes": [7]}, {"nodes": [5]}], "fpgas": []})"),
            "s: cpus: found an array of 2, expected 1 with nodes at most");
}

const char kDoppler[] =
    "5\n"
    "0, 1, \n"
    "0, 0, 1, 1,\n"
    "1, 2, 2, 2\n"
    "10000000000,5000000000\n"
    "20000000000,0,einsummable\n"
    "1,2\n";

TEST(Doppler, NumbersNodesWithoutInputs) {
  const PlanProblem p = read_doppler(kDoppler, "dir/8gpu_x.txt", 0);
  EXPECT_EQ(p.model, PlanModel::kStep);
  EXPECT_EQ(p.num_devices(), 8);
  ASSERT_EQ(p.num_ops(), 3);
  EXPECT_EQ(p.names, (std::vector<std::string>{"0", "einsummable_1", "2"}));
  EXPECT_EQ(p.costs.time(0, 0).us, 1);
  EXPECT_EQ(p.costs.link(0, 1).time_us(p.costs.bytes[0][0]), 0.5);
  EXPECT_EQ(p.graph.reads[2].size(), 2u);
  EXPECT_EQ(p.costs.devices[0].copies, CopyRule::kFree);
  EXPECT_EQ(read_doppler(kDoppler, "ffnn.txt", 0).num_devices(), 4);
  EXPECT_EQ(read_doppler(kDoppler, "ffnn.txt", 6).num_devices(), 6);
}

TEST(Doppler, BadLinesAreNamedByNumber) {
  const auto says = [](const std::string& old, const std::string& now) {
    return message_of([&] { read_doppler(with(kDoppler, old, now), "f", 4); });
  };
  EXPECT_EQ(says("5\n", "x\n"),
            "f: line 1 has \"x\"; expected the number of nodes");
  EXPECT_EQ(says("5\n", "2\n"),
            "f: line 2 has 2 inputs of 2 nodes; expected nodes beside the "
            "inputs");
  EXPECT_EQ(says("5\n", "900\n"),
            "f: line 2 has 898 nodes beside the inputs; expected as many as "
            "its 87 bytes describe");
  EXPECT_EQ(says("0, 0, 1, 1,", "0, 0, 1, 3"),
            "f: line 3 has node 3; expected 0 to 2: nodes that are no inputs");
  EXPECT_EQ(says("0, 0, 1, 1,", "0, 0, 1"),
            "f: line 4 has 4 targets; expected 3, one for each source");
  EXPECT_EQ(says("1,2\n", "1\n"),
            "f: line 7 has 1 of 2 numbers; expected \"compute,transfer\"");
  EXPECT_EQ(says("1,2\n", "-1,2\n"),
            "f: line 7 has \"-1,2\"; expected a type of letters");
  EXPECT_EQ(says("1,2\n", "99999999999999999999,2\n"),
            "f: line 7 has \"99999999999999999999,2\"; expected numbers below "
            "9223372036854775808");
  EXPECT_EQ(says("1,2\n", ""),
            "f: ends after line 6; expected \"compute,transfer\" of each node");
  EXPECT_EQ(says("1,2\n", "1,2\n3,4\n"),
            "f: line 8 has more; expected the end, behind 3 nodes");
  EXPECT_NE(says("1, 2, 2, 2", "0, 2, 2, 2").find("waits for itself"),
            std::string::npos);
  EXPECT_NE(message_of([] { read_doppler("", "f", 0); }), "");
}

// A limit of 60.25 is 241 quarters; a cluster's 60 are 240.
TEST(Cluster, LimitsAreMeasuredAsThoseOfTheFile) {
  PlanProblem p = read_dnn_partitioning(
      R"({"maxSizePerFPGA": 60.25, "maxFPGAs": 1, "maxCPUs": 1, "nodes": [
      {"id": 0, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 1,
       "isBackwardNode": 0, "size": 50}], "edges": []})",
      "file", Objective::kThroughput);
  use_cluster(
      read_cluster(R"({"devices": [{"name": "ACC:0", "memory_bytes": 60}]})",
                   "c.json"),
      p);
  EXPECT_EQ(p.costs.devices[0].memory_limit, 240);
  EXPECT_EQ(p.resident_bytes[0], 200);
  EXPECT_EQ(limit_of(p, 1e30), int64_t{1} << 62);
}

}  // namespace
}  // namespace berth
