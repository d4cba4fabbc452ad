#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "berth/errors.h"
#include "cli/cluster_reach.h"
#include "cli/commands.h"
#include "cli/launch_output.h"
#include "cli/launch_plan.h"

namespace berth::cli {
namespace {

using distribute::ClusterSpec;
using distribute::TaskId;

TEST(LinePrefixer, PutsTheNameBeforeEveryLine) {
  LinePrefixer lines("[a] ");
  EXPECT_EQ(lines.add("one\ntw"), "[a] one\n");
  EXPECT_EQ(lines.add("o\n\n"), "[a] two\n[a] \n");
  EXPECT_EQ(lines.add("end"), "");
  EXPECT_EQ(lines.end(), "[a] end\n");
  EXPECT_EQ(lines.end(), "");
  EXPECT_EQ(lines.last_line(), "end");
}

TEST(LinePrefixer, KeepsALineOfAnyLengthWhole) {
  LinePrefixer lines("> ");
  const std::string text(200000, 'x');
  std::string out = lines.add(text.substr(0, 70000));
  out += lines.add(text.substr(70000));
  out += lines.end();
  EXPECT_EQ(static_cast<size_t>(std::count(out.begin(), out.end(), 'x')),
            text.size());
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 4);  // of 64 KiB each
}

LaunchPlan plan_of(LaunchOptions o, const char* cores = "0-7") {
  std::vector<int> ports;
  for (int i = 0; i < ports_needed(o); ++i) ports.push_back(2000 + i);
  return plan_launch(o, ports, CoreSet::parse(cores));
}

TEST(LaunchPlan, ParameterServersBringAChief) {
  const LaunchPlan plan = plan_of({.workers = 2, .ps = 1, .evaluator = true});
  std::vector<std::string> names;
  for (const LaunchTask& t : plan.tasks) names.push_back(t.id.str());
  EXPECT_EQ(names, (std::vector<std::string>{"chief:0", "worker:0", "worker:1",
                                             "ps:0", "evaluator:0"}));
  EXPECT_EQ(plan.spec,
            ClusterSpec({{"chief", {"127.0.0.1:2000"}},
                         {"worker", {"127.0.0.1:2001", "127.0.0.1:2002"}},
                         {"ps", {"127.0.0.1:2003"}}}));
  EXPECT_TRUE(decides_the_end(plan, {"chief", 0}));
  EXPECT_FALSE(decides_the_end(plan, {"worker", 0}));
  EXPECT_TRUE(decides_the_end(plan_of({.workers = 2}), {"worker", 0}));
}

TEST(LaunchPlan, TasksHaveCoresOfTheirOwn) {
  std::set<int> seen;
  for (const LaunchTask& t : plan_of({.workers = 3}).tasks) {
    EXPECT_GE(t.cores.size(), 2);
    for (const int core : t.cores.cores())
      EXPECT_TRUE(seen.insert(core).second);
  }
  EXPECT_EQ(seen.size(), 8u);
  // Too few for all: only tasks that compute get some.
  const LaunchPlan two = plan_of({.workers = 2, .ps = 1}, "0-1");
  EXPECT_TRUE(two.tasks[0].cores.empty());  // the chief
  EXPECT_EQ(two.tasks[1].cores.size(), 1);
  EXPECT_TRUE(two.tasks[3].cores.empty());  // the server
  EXPECT_FALSE(two.cores_note.empty());
  for (const LaunchTask& t : plan_of({.workers = 3}, "0-1").tasks) {
    EXPECT_TRUE(t.cores.empty());
  }
  EXPECT_TRUE(plan_of({.workers = 2, .cores = "all"}).tasks[0].cores.empty());
  EXPECT_EQ(plan_of({.workers = 2, .cores = "0-1/5"}).tasks[1].cores.str(),
            "5");
  for (const char* bad : {"0", "0/1/2", "x/y", "0-1/"}) {
    const LaunchOptions o{.workers = 2, .cores = bad};
    if (std::string(bad) == "0-1/") continue;  // empty set: all
    EXPECT_THROW(plan_of(o), UsageError) << bad;
  }
  EXPECT_THROW(ports_needed({.workers = -1}), UsageError);
  EXPECT_THROW(ports_needed({.workers = 0}), UsageError);
}

TEST(LaunchPlan, TfConfigIsWhatTensorFlowReads) {
  const LaunchPlan plan = plan_of({.workers = 2, .evaluator = true});
  const auto json = nlohmann::json::parse(tf_config_text(plan, plan.tasks[1]));
  EXPECT_EQ(json["cluster"]["worker"][1], "127.0.0.1:2001");
  EXPECT_EQ(json["task"]["type"], "worker");
  EXPECT_EQ(json["task"]["index"], 1);
  // The evaluator is not part of the cluster.
  const auto side = nlohmann::json::parse(tf_config_text(plan, plan.tasks[2]));
  EXPECT_EQ(side["task"]["type"], "evaluator");
  EXPECT_FALSE(side["cluster"].contains("evaluator"));
}

TEST(LaunchPlan, LeavesOutWhatOtherLaunchersSet) {
  const LaunchOptions o{.workers = 2, .devices = "CPUx1"};
  const LaunchPlan plan = plan_of(o);
  const char* const before[] = {"HOME=/h",        "RANK=3",
                                "TF_CONFIG={}",   "OMPI_COMM_WORLD_SIZE=4",
                                "SLURM_PROCID=1", "BERTH_CLUSTER_SECRET=old",
                                nullptr};
  const std::vector<std::string> after =
      launch_environment(o, plan, plan.tasks[0], "new", 2, before);
  const std::multiset<std::string> set(after.begin(), after.end());
  EXPECT_EQ(set.size(), 5u);
  for (const char* v : {"HOME=/h", "BERTH_CLUSTER_SECRET=new",
                        "BERTH_RESTART_COUNT=2", "BERTH_DEVICES=CPUx1"}) {
    EXPECT_EQ(set.count(v), 1u) << v;
  }
}

TEST(LaunchPlan, ProbesOfEachTaskHaveAPort) {
  const LaunchOptions o{.workers = 2};
  const LaunchPlan plan = plan_of(o);
  const auto port = [&](const char* given) {
    const char* const before[] = {given, nullptr};
    return launch_environment(o, plan, plan.tasks[1], "", 0, before)[0];
  };
  EXPECT_EQ(port("BERTH_HTTP_PORT=8080"), "BERTH_HTTP_PORT=8081");
  EXPECT_EQ(port("BERTH_HTTP_PORT=127.0.0.1:80"),
            "BERTH_HTTP_PORT=127.0.0.1:81");
  for (const char* as_it_is : {"BERTH_HTTP_PORT=", "BERTH_HTTP_PORT=port",
                               "BERTH_HTTP_PORT=127.0.0.1:80x"}) {
    EXPECT_EQ(port(as_it_is), as_it_is);
  }
}

TEST(LaunchPlan, SecretsAreNew) {
  EXPECT_EQ(new_secret().size(), 64u);
  EXPECT_NE(new_secret(), new_secret());
}

std::vector<Reached> with_ips() {
  return {{.task = {"worker", 0},
           .address = "a:1",
           .state = Reach::kReached,
           .ips = {"10.0.0.1"}},
          {.task = {"worker", 1},
           .address = "b:1",
           .state = Reach::kReached,
           .ips = {"10.0.0.1"}},
          {.task = {"worker", 2}, .address = "c:1", .ips = {"127.0.1.1"}},
          {.task = {"worker", 3}, .address = "b:2", .ips = {"10.0.0.1"}}};
}

TEST(ClusterReach, QuotesTwoNamesOfOneAddress) {
  std::vector<Reached> all = with_ips();
  find_duplicates("TF_CONFIG", all);
  EXPECT_EQ(all[0].state, Reach::kReached);
  EXPECT_EQ(all[1].state, Reach::kDuplicate);
  EXPECT_NE(all[1].why.find("TF_CONFIG: worker[1] is \"b:1\", and worker[0] is "
                            "\"a:1\": both are 10.0.0.1, port 1"),
            std::string::npos)
      << all[1].why;
  EXPECT_EQ(all[3].state, Reach::kUnknown);  // another port
  // This task stays this task: the other one is marked.
  all = with_ips();
  all[1].state = Reach::kSelf;
  find_duplicates("TF_CONFIG", all);
  EXPECT_EQ(all[0].state, Reach::kDuplicate);
  EXPECT_EQ(all[1].state, Reach::kSelf);
}

TEST(ClusterReach, NotesOtherNamesOfThisHost) {
  const std::vector<std::string> notes = reach_notes(with_ips());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("c is 127.0.1.1"), std::string::npos);
}

}  // namespace
}  // namespace berth::cli
