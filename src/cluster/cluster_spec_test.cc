#include <gtest/gtest.h>

#include "berth/cluster.h"
#include "berth/errors.h"
#include "cluster/checks.h"
#include "cluster/node_list.h"

namespace berth::cluster {
namespace {

using distribute::ClusterSpec;
using distribute::TaskId;
using Lists = std::map<std::string, std::vector<std::string>>;

// The text of the error; "" if there is none.
std::string refused_spec(const Lists& jobs) {
  try {
    ClusterSpec spec(jobs);
    return "";
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
}

void expect_parts(const std::string& text,
                  const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos)
        << "'" << part << "' not in: " << text;
  }
}

TEST(ClusterSpec, HasTasksInOrderOfRanks) {
  const ClusterSpec spec({{"worker", {"a:1", "b:1"}},
                          {"ps", {"c:1"}},
                          {"chief", {"d:1"}},
                          {"evaluator", {}}});
  const std::vector<TaskId> ranks = {
      {"chief", 0}, {"worker", 0}, {"worker", 1}};
  EXPECT_EQ(spec.ranks(), ranks);
  EXPECT_EQ(spec.tasks().back(), (TaskId{"ps", 0}));
  EXPECT_EQ(spec.coordinator(), (TaskId{"chief", 0}));
  EXPECT_EQ(spec.task_address("worker", 1), "b:1");
  EXPECT_EQ(spec.num_tasks("evaluator"), 0);
  EXPECT_EQ(spec.jobs(), (std::vector<std::string>{"chief", "ps", "worker"}));
  EXPECT_EQ(spec.json(), R"({"chief":{"0":"d:1"},"ps":{"0":"c:1"},)"
                         R"("worker":{"0":"a:1","1":"b:1"}})");
}

TEST(ClusterSpec, ReadsMasterAndCoordinatorAsChief) {
  for (const char* name : {"master", "coordinator", "chief"}) {
    const ClusterSpec spec(Lists{{name, {"a:1"}}, {"worker", {"b:1"}}});
    EXPECT_EQ(spec, ClusterSpec({{"chief", {"a:1"}}, {"worker", {"b:1"}}}));
    EXPECT_EQ(spec.hash(),
              ClusterSpec({{"chief", {"a:1"}}, {"worker", {"b:1"}}}).hash());
  }
}

TEST(ClusterSpec, TakesNamesAndAddressesOfBothFamilies) {
  const ClusterSpec spec({{"worker",
                           {"[2001:db8::1]:2222", "10.0.0.2:65535",
                            "train_1.example.com:1", "HOST-2:8080"}}});
  EXPECT_EQ(spec.task_address("worker", 0), "[2001:db8::1]:2222");
  EXPECT_EQ(parse_address("x", "[FE80::1%eth0]:7", {}).host, "fe80::1%eth0");
  EXPECT_EQ(parse_address("x", "Host.:7", {}).host, "host");
  EXPECT_EQ(parse_address("x", "[2001:DB8:0:0::01]:7", {}).host, "2001:db8::1");
  EXPECT_EQ(parse_address("x", "[::ffff:10.0.0.2]:7", {}).host, "10.0.0.2");
  EXPECT_TRUE(parse_address("x", "[0:0:0:0:0:0:0:1]:7", {}).loopback());
  EXPECT_TRUE(parse_address("x", "127.0.1.1:7", {}).loopback());
}

TEST(ClusterSpec, RefusesWhatCanBeSeenToBeWrong) {
  struct Case {
    Lists jobs;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {{{"ps_hosts", {"a:1"}}}, {"\"ps_hosts\" is no job", "write \"ps\""}},
      {{{"workers", {"a:1"}}}, {"write \"worker\""}},
      {{{"Chief", {"a:1"}}}, {"write \"chief\""}},
      {{{"wroker", {"a:1"}}}, {"write \"worker\""}},
      {{{"parameter_server", {"a:1"}}}, {"write \"ps\""}},
      {{{"database", {"a:1"}}}, {"\"database\" is no job"}},
      {{{"chief", {"a:1", "b:1"}}}, {"ClusterSpec.chief has 2 tasks"}},
      {{{"chief", {"a:1"}}, {"master", {"b:1"}}},
       {"\"chief\" and \"master\"", "one job"}},
      {{{"worker", {"a:1", "b"}}}, {"worker[1] is \"b\"", "has no port"}},
      {{{"worker", {""}}}, {"worker[0] is \"\"", "has no port"}},
      {{{"worker", {":1"}}}, {"has no host"}},
      {{{"worker", {"a:"}}}, {"port from 1 to 65535"}},
      {{{"worker", {"a:0"}}}, {"port from 1 to 65535"}},
      {{{"worker", {"a:65536"}}}, {"port from 1 to 65535"}},
      {{{"worker", {"a:99999999999999999999"}}}, {"port from 1 to 65535"}},
      {{{"worker", {"a:-1"}}}, {"port from 1 to 65535"}},
      {{{"worker", {"grpc://a:1"}}}, {"names a protocol"}},
      {{{"worker", {"::1:2222"}}}, {"brackets"}},
      {{{"worker", {"[::1]"}}}, {"has no port"}},
      {{{"worker", {"[]:1"}}}, {"has no host"}},
      {{{"worker", {"[1.2.3.4]:1"}}}, {"no IPv6 address"}},
      {{{"worker", {"256.1.1.1:1"}}}, {"no IPv4 address"}},
      {{{"worker", {"0.0.0.0:1"}}}, {"nobody can dial"}},
      {{{"worker", {"[::]:1"}}}, {"nobody can dial"}},
      {{{"worker", {"a b:1"}}}, {"characters that none can have"}},
      {{{"worker", {"a:1", "A:1"}}}, {"worker[1]", "worker[0]", "already"}},
      {{{"worker", {"a:1"}}, {"ps", {"a:1"}}}, {"worker[0]", "ps[0]"}},
      {{{"worker", {"localhost:1", "127.0.0.1:1"}}}, {"already"}},
      {{{"worker", {"localhost:1", "[0::1]:1"}}}, {"worker[1]", "already"}},
      {{{"worker", {"10.0.0.2:1", "[::ffff:10.0.0.2]:1"}}}, {"already"}},
      {{{"worker", {"[2001:db8::1]:1", "[2001:db8:0::1]:1"}}}, {"already"}},
      {{{"worker", {"localhost:1", "b:1"}}},
       {"worker[0] is \"localhost:1\"", "worker[1] is \"b:1\""}},
  };
  for (const Case& c : cases) {
    const std::string text = refused_spec(c.jobs);
    expect_parts(text, c.parts);
    expect_parts(text, {"ClusterSpec", "cluster_spec_test.cc:"});
  }
  EXPECT_EQ(refused_spec({{"worker", {"localhost:1", "127.0.0.1:2"}}}), "");
}

TEST(ClusterSpec, KeepsTheGapsOfASparseJob) {
  const ClusterSpec spec =
      ClusterSpec::sparse({{"worker", {{3, "a:1"}, {1, "b:1"}}}});
  EXPECT_EQ(spec.task_indices("worker"), (std::vector<int>{1, 3}));
  EXPECT_EQ(spec.coordinator(), (TaskId{"worker", 1}));
  EXPECT_THROW(spec.task_address("worker", 0), errors::InvalidArgument);
  EXPECT_THROW(ClusterSpec::sparse({{"worker", {{-1, "a:1"}}}}),
               errors::InvalidArgument);
}

TEST(ClusterSpec, OfWorkersKnowsTheCoordinatorAlone) {
  const ClusterSpec spec = ClusterSpec::of_workers(3, "a:1");
  EXPECT_EQ(spec.task_address("worker", 0), "a:1");
  EXPECT_EQ(spec.task_address("worker", 2), "");
  EXPECT_THROW(ClusterSpec::of_workers(0, "a:1"), errors::InvalidArgument);
  EXPECT_THROW(ClusterSpec::of_workers(2, "a"), errors::InvalidArgument);
}

TEST(NodeList, ExpandsAsSlurmDoes) {
  using Hosts = std::vector<std::string>;
  const auto hosts = [](const char* text) {
    return expand_node_list("LIST", text, {});
  };
  EXPECT_EQ(hosts("n1"), (Hosts{"n1"}));
  EXPECT_EQ(hosts("n[9-11]"), (Hosts{"n9", "n10", "n11"}));
  EXPECT_EQ(hosts("n[09-11]"), (Hosts{"n09", "n10", "n11"}));
  EXPECT_EQ(hosts("n[1,3-4],login,m[7]"),
            (Hosts{"n1", "n3", "n4", "login", "m7"}));
  EXPECT_EQ(hosts("r[1-2]n[1-2]"), (Hosts{"r1n1", "r1n2", "r2n1", "r2n2"}));
  EXPECT_EQ(hosts("n[1-2]-ib"), (Hosts{"n1-ib", "n2-ib"}));
  EXPECT_EQ(hosts("[1-2]"), (Hosts{"1", "2"}));
  EXPECT_EQ(hosts("n[1-3]x[1-200]").size(), 600u);
}

TEST(NodeList, RefusesWhatIsNone) {
  for (const char* bad :
       {"", ",", "n1,", "n[", "n[]", "n[1", "n[1-", "n[1-]", "n[-1]", "n]",
        "n[1]]", "n[2-1]", "n[a]", "n[1,,2]", "n 1", "n[1-99999999999]",
        "n[0-99999999]", "n[1-999][1-999][1-999]", "n[[1]]"}) {
    EXPECT_THROW(expand_node_list("LIST", bad, {}), errors::InvalidArgument)
        << bad;
  }
  try {
    expand_node_list("LIST", "n[1-x]", {});
  } catch (const errors::InvalidArgument& e) {
    expect_parts(e.what(), {"LIST is \"n[1-x]\"", "character 5"});
  }
}

TEST(NodeList, CountsTasksPerNode) {
  const auto counts = [](const char* text) {
    return expand_counts("COUNTS", text, {});
  };
  EXPECT_EQ(counts("5,4(x3)"), (std::vector<int>{5, 4, 4, 4}));
  EXPECT_EQ(counts("2(x2),1"), (std::vector<int>{2, 2, 1}));
  for (const char* bad : {"", "x", "1,", "1(x)", "1(x2", "0", "-1", "1(x0)",
                          "1(x99999999)", "99999999999", "1 2"}) {
    EXPECT_THROW(counts(bad), errors::InvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace berth::cluster
