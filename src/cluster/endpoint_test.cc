// The endpoint: readiness by phase, and metrics by a line-by-line reading.

#include "cluster/endpoint.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/fresh_process_testing.h"
#include "device/device_manager.h"

namespace berth::cluster {
namespace {

using fresh_process::check;
using live_counts::ClusterState;

// Samples by name and labels; each has a type before it.
std::map<std::string, double> samples_of(const std::string& text) {
  std::map<std::string, double> samples;
  std::string type, line;
  std::istringstream lines(text);
  while (std::getline(lines, line)) {
    if (line.starts_with("# TYPE ")) type = line.substr(7);
    if (line.starts_with("#")) continue;
    const size_t space = line.rfind(' ');
    const std::string name = line.substr(0, line.find_first_of("{ "));
    EXPECT_TRUE(type == name + " counter" || type == name + " gauge") << line;
    EXPECT_EQ(type.ends_with("counter"), name.ends_with("_total")) << line;
    EXPECT_TRUE(
        samples.emplace(line.substr(0, space), std::stod(line.substr(space)))
            .second)
        << line;
  }
  return samples;
}

TEST(Endpoint, MetricsAreTheCounts) {
  live_counts::Counts counts;
  counts.calls = {{"train", 7}, {"a \"b\"\\\n\xff", 1}};
  counts.input_wait_us = 1.5e6;
  counts.steps = 12;
  counts.examples = 384;
  counts.peer_wait_us = {{"worker:1", 250e3}};
  counts.exchanges = {{"all_reduce", {3, 4096, 5e5}}};
  counts.sent_bytes = int64_t{5} << 40;
  counts.received_bytes = 11;
  auto s =
      samples_of(metrics_text(counts, {ClusterState::kRunning, "worker:0", 2}));
  EXPECT_EQ(s["berth_task_ready{task=\"worker:0\"}"], 1);
  EXPECT_EQ(s["berth_cluster_generation"], 2);
  EXPECT_EQ(s["berth_steps_total"], 12);
  EXPECT_EQ(s["berth_examples_total"], 384);
  EXPECT_EQ(s["berth_input_wait_seconds_total"], 1.5);
  EXPECT_EQ(s["berth_sent_bytes_total"], 5497558138880.0);
  EXPECT_EQ(s["berth_received_bytes_total"], 11);
  EXPECT_EQ(s["berth_function_calls_total{function=\"train\"}"], 7);
  EXPECT_EQ(s["berth_function_calls_total{function=\"a \\\"b\\\"\\\\ \xef\xbf"
              "\xbd\"}"],
            1);
  EXPECT_EQ(s["berth_exchanges_total{kind=\"all_reduce\"}"], 3);
  EXPECT_EQ(s["berth_exchange_bytes_total{kind=\"all_reduce\"}"], 4096);
  EXPECT_EQ(s["berth_exchange_seconds_total{kind=\"all_reduce\"}"], 0.5);
  EXPECT_EQ(s["berth_peer_wait_seconds_total{peer=\"worker:1\"}"], 0.25);
}

void readiness_follows_the_cluster() {
  const auto ready = [] { return endpoint_answer("/readyz").status; };
  check(ready() == 200, "alone");
  for (const auto& [phase, status] : {std::pair{ClusterState::kForming, 503},
                                      {ClusterState::kRunning, 200},
                                      {ClusterState::kFailed, 503},
                                      {ClusterState::kEnded, 200}}) {
    live_counts::set_cluster({phase, "worker:1", 1});
    check(ready() == status, std::to_string(phase));
    check(endpoint_answer("/livez").status == 200, "alive");
  }
  check(endpoint_answer("/").status == 404, "another path");
}

TEST(Endpoint, ReadinessFollowsTheCluster) {
  IN_A_FRESH_PROCESS(readiness_follows_the_cluster());
}

void a_task_that_has_not_joined() {
  setenv("BERTH_HTTP_PORT", "127.0.0.1:0", 1);
  setenv("PET_NNODES", "2", 1);
  setenv("PET_NODE_RANK", "1", 1);
  setenv("PET_MASTER_ADDR", "a", 1);
  setenv("PET_MASTER_PORT", "1", 1);
  check(!live_counts::is_on(), "off");
  serve_endpoint({});
  check(live_counts::is_on(), "on");
  check(endpoint_answer("/readyz").status == 503, "not ready");
  check(endpoint_answer("/metrics").body.find("device=") == std::string::npos,
        "asking creates no devices");
  DeviceManager::get();
  check(endpoint_answer("/metrics").body.find("device=\"CPU:0\"") !=
            std::string::npos,
        "memory by device");
}

TEST(Endpoint, ATaskIsNotReadyBeforeItJoins) {
  IN_A_FRESH_PROCESS(a_task_that_has_not_joined());
}

}  // namespace
}  // namespace berth::cluster
