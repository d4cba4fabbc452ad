#include "planner/cluster.h"

#include <gtest/gtest.h>

#include "berth/errors.h"
#include "planner/problem_testing.h"

namespace berth {
namespace {

std::string error_of(const std::string& text) {
  try {
    read_cluster(text, "c.json");
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "none";
}

TEST(Cluster, ReadsDevicesClassesAndLinks) {
  const Cluster c = read_cluster(R"({
    "devices": [{"name": "GPU", "count": 2, "memory": "16GiB"},
                {"name": "GPU:7", "class": "old", "copies": "both"},
                {"name": "CPU:0", "memory_bytes": 1000}],
    "classes": [{"name": "old", "type": "GPU", "flops": "1TFLOPS",
                 "bandwidth": "100GB/s", "launch_us": 7, "speed": 0.5}],
    "default_link": {"latency": "2us", "bandwidth": "10GB/s"},
    "links": [{"from": "GPU:0", "to": "/GPU:1", "bandwidth": "64GB/s",
               "shared": 3},
              {"from": "CPU:0", "to": "GPU:7", "latency": "1ms",
               "one_way": true}],
    "times": {"a": {"old": "3us", "GPU": "inf"}}})",
                                 "c.json");
  const Machine& m = c.machine;
  ASSERT_EQ(m.devices.size(), 4u);
  EXPECT_EQ(m.devices[1].name, "/job:localhost/replica:0/task:0/device:GPU:1");
  EXPECT_EQ(m.devices[1].memory_limit, int64_t{16} << 30);
  EXPECT_EQ(m.devices[2].copies, CopyRule::kBoth);
  EXPECT_EQ(m.devices[3].memory_limit, 1000);
  EXPECT_EQ(m.class_of(2).flops_per_us, 1e6);
  EXPECT_EQ(m.class_of(2).bytes_per_us, 1e5);
  EXPECT_EQ(m.class_of(2).launch_us, 7);
  EXPECT_EQ(m.class_of(0).type, "GPU");
  EXPECT_EQ(c.speed[m.devices[2].device_class], 0.5);
  EXPECT_DOUBLE_EQ(m.link(0, 1).bytes_per_us, 64e3);
  EXPECT_DOUBLE_EQ(m.link(1, 0).bytes_per_us, 64e3);
  EXPECT_EQ(m.link(0, 1).shared, 3);
  EXPECT_EQ(m.link(0, 1).latency_us, 2);
  EXPECT_EQ(m.link(3, 2).latency_us, 1000);
  EXPECT_EQ(m.link(2, 3).latency_us, 2);
  ASSERT_EQ(c.times.size(), 2u);
}

SharedLinks shared(std::initializer_list<int32_t> numbers) {
  SharedLinks all;
  for (const int32_t n : numbers) all.add(n);
  return all;
}

TEST(Cluster, ReadsHostsAndTheNetworkBetweenThem) {
  const Cluster c = read_cluster(R"({
    "hosts": [{"count": 2, "devices": [{"name": "CPU:0"},
                                       {"name": "GPU", "count": 2}]},
              {"job": "ps", "devices": [{"name": "CPU:0"}]},
              {"devices": [{"name": "GPU:0", "memory": "16GiB"}]}],
    "default_link": {"latency": "2us", "bandwidth": "50GB/s", "shared": 6},
    "network": {"latency": "30us", "bandwidth": "10GB/s"},
    "links": [{"from": "/job:worker/task:1/GPU:0",
               "to": "/job:worker/task:2/GPU:0", "bandwidth": "20GB/s"}]})",
                                 "c.json");
  const Machine& m = c.machine;
  std::vector<std::string> names;
  for (const DeviceCost& d : m.devices) names.push_back(d.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "/job:worker/replica:0/task:0/device:CPU:0",
                       "/job:worker/replica:0/task:0/device:GPU:0",
                       "/job:worker/replica:0/task:0/device:GPU:1",
                       "/job:worker/replica:0/task:1/device:CPU:0",
                       "/job:worker/replica:0/task:1/device:GPU:0",
                       "/job:worker/replica:0/task:1/device:GPU:1",
                       "/job:ps/replica:0/task:0/device:CPU:0",
                       "/job:worker/replica:0/task:2/device:GPU:0"}));
  EXPECT_EQ(m.devices[7].memory_limit, int64_t{16} << 30);
  // Inside of a host, and between two.
  EXPECT_DOUBLE_EQ(m.link(1, 2).bytes_per_us, 5e4);
  EXPECT_EQ(m.link(1, 2).shared, 6);
  EXPECT_DOUBLE_EQ(m.link(1, 4).bytes_per_us, 1e4);
  EXPECT_EQ(m.link(1, 4).latency_us, 30);
  EXPECT_DOUBLE_EQ(m.link(4, 7).bytes_per_us, 2e4);
  EXPECT_EQ(m.link(7, 4).latency_us, 30);
  // A transfer goes out through one card and in through another. Numbers begin
  // after that of the file.
  EXPECT_EQ(m.link(0, 3).shared, shared({7, 10}));
  EXPECT_EQ(m.link(2, 4).shared, shared({7, 10}));
  EXPECT_EQ(m.link(3, 0).shared, shared({9, 8}));
  EXPECT_EQ(m.link(0, 6).shared, shared({7, 12}));
  EXPECT_EQ(m.shared_names[10], "the network card, in of /job:worker/task:1");
}

TEST(Cluster, ReadsPathsOfSeveralSharedLinks) {
  const Machine m = read_cluster(R"({
    "devices": [{"name": "GPU", "count": 4}],
    "default_link": {"shared": [5]},
    "links": [{"from": "GPU:0", "to": "GPU:1", "shared": [9, 0, 3]},
              {"from": "GPU:1", "to": "GPU:2", "shared": []},
              {"from": "GPU:2", "to": "GPU:3", "shared": -1}]})",
                                 "c.json")
                        .machine;
  EXPECT_EQ(m.link(0, 3).shared, 5);
  EXPECT_EQ(m.link(1, 0).shared, shared({0, 3, 9}));
  EXPECT_TRUE(m.link(1, 2).shared.empty());
  EXPECT_TRUE(m.link(2, 3).shared.empty());
}

// Hosts 0 and 1, 2 and 3, and 4 are racks. Cards have the numbers 0 to 9.
TEST(Cluster, ReadsRacksOfHosts) {
  const Machine m = read_cluster(R"({
    "hosts": [{"count": 5, "devices": [{"name": "GPU", "count": 2}]}],
    "default_link": {"latency": "1us"},
    "network": {"latency": "20us", "bandwidth": "10GB/s",
                "racks": {"hosts": 2, "bandwidth": "5GB/s"}}})",
                                 "c.json")
                        .machine;
  EXPECT_EQ(m.links.size(), 25u);  // of hosts
  EXPECT_EQ(m.link(0, 1).latency_us, 1);
  EXPECT_TRUE(m.link(0, 1).shared.empty());
  EXPECT_EQ(m.link(1, 2).shared, shared({0, 3}));
  EXPECT_EQ(m.link(1, 2).bytes_per_us, 1e4);
  EXPECT_EQ(m.link(3, 8).shared, shared({2, 9, 10, 15}));
  EXPECT_EQ(m.link(8, 3).shared, shared({8, 3, 14, 11}));
  EXPECT_EQ(m.link(3, 8).latency_us, 20);
  EXPECT_EQ(m.link(3, 8).bytes_per_us, 5e3);
  EXPECT_EQ(m.shared_names[15],
            "the uplink, in of the rack of /job:worker/task:4 to "
            "/job:worker/task:4");
}

TEST(Cluster, NamesWhatIsWrongAndWhere) {
  const char* one_host =
      R"({"hosts": [{"devices": [{"name": "CPU:0"}]}], "network": {}})";
  EXPECT_NE(error_of(one_host).find("two hosts or more"), std::string::npos);
  const char* of_another =
      R"({"hosts": [{"devices": [{"name": "/job:ps/task:0/CPU:0"}]}]})";
  EXPECT_NE(error_of(of_another).find("a device of the host"),
            std::string::npos);
  const auto expect = [](const char* text, const char* part) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(part), std::string::npos) << text << "\n" << error;
  };
  expect("", "c.json: line 1, column 1");
  const auto expect_shared = [&](const char* value, const char* part) {
    const std::string text =
        R"({"devices": [{"name": "CPU:0"}], "default_link": {"shared": )" +
        std::string(value) + "}}";
    expect(text.c_str(), part);
  };
  expect_shared("\"a\"", "c.json: default_link.shared: found \"a\"");
  expect_shared("[0, -1]",
                "c.json: default_link.shared[1]: found -1, expected 0 to 4095");
  expect_shared("[4096]", "default_link.shared[0]: found 4096");
  expect_shared("[2, 1, 2]",
                "default_link.shared[2]: found 2, expected each number once");
  expect_shared("[1, 2, 3, 4, 5]",
                "default_link.shared: found an array of 5, expected at most 4");
  const std::string hosts =
      R"({"hosts": [{"count": 2, "devices": [{"name": "CPU:0"}]}], "network": )";
  expect((hosts + R"({"racks": {"hosts": 3}}})").c_str(),
         "network.racks.hosts: found 3, expected 1 to 2");
  expect((hosts + R"({"shared": [0, 1, 2], "racks": {"hosts": 1}}})").c_str(),
         "network.shared: found an array of 3, expected at most 2 numbers");
  expect("{\n \"devices\": [,]}", "c.json: line 2, column 14");
  expect("[]", "the document: found an array of 0, expected an object");
  expect("{}", "has no \"devices\"");
  expect(R"({"devices": []})", "devices: found an array of 0");
  expect(R"({"devices": [{}]})", "devices[0]: has no \"name\"");
  expect(R"({"devices": [{"name": 5}]})", "devices[0].name: found 5");
  expect(R"({"devices": [{"name": "GPU:x"}]})", "devices[0].name:");
  expect(R"({"devices": [{"name": "GPU:0", "memory": "16"}]})",
         "devices[0].memory: \"16\" has no unit; expected a size");
  expect(R"({"devices": [{"name": "GPU:0", "memory_bytes": -1}]})",
         "devices[0].memory_bytes: found -1, expected 0 or more");
  expect(R"({"devices": [{"name": "GPU:0"}, {"name": "/GPU:0"}]})",
         "devices[1].name: names");
  expect(R"({"devices": [{"name": "GPU", "count": 4097}]})",
         "devices[0].count: found 4097, expected 1 to 4096");
  expect(R"({"devices": [{"name": "GPU:0", "colour": 1}]})",
         "devices[0]: found a field \"colour\"");
  expect(R"({"devices": [{"name": "GPU:0", "class": "A"}]})",
         "devices[0].class: found \"A\", expected the name of a class");
  expect(R"({"devices": [{"name": "GPU:0", "copies": "never"}]})",
         "devices[0].copies");
  expect(R"({"devices": [{"name": "GPU:0"}],
             "links": [{"from": "GPU:0", "to": "GPU:0"}]})",
         "links[0].to");
  expect(R"({"devices": [{"name": "GPU:0"}],
             "links": [{"from": "GPU:0", "to": "GPU:5"}]})",
         "links[0].to: found \"GPU:5\", expected the name of a device");
  expect(R"({"devices": [{"name": "GPU:0"}],
             "default_link": {"bandwidth": "0GB/s"}})",
         "\"bandwidth\" is 0");
  expect(R"({"devices": [{"name": "GPU:0"}], "times": {"a": {"TPU": 1}}})",
         "times.a.TPU: there is no class \"TPU\"");
  expect(R"({"devices": [{"name": "GPU:0"}],
             "classes": [{"name": "GPU", "speed": 0}]})",
         "classes[0].speed");
}

TEST(Cluster, DeepNestingIsNoCrash) {
  const std::string deep(200000, '[');
  EXPECT_NE(error_of(deep), "none");
  const std::string closed = deep + std::string(200000, ']');
  EXPECT_NE(error_of(closed), "none");
}

}  // namespace
}  // namespace berth
