#include <gtest/gtest.h>

#include "berth/debugging.h"
#include "berth/errors.h"
#include "cluster/variables.h"

namespace berth::cluster {
namespace {

using Set = std::map<std::string, std::string>;

ClusterResolver resolve(const Set& set) {
  return read_environment(Variables(set), Site::here());
}

std::string refused(const Set& set) {
  try {
    resolve(set);
    return "";
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
}

void expect_refused(const Set& set, const std::vector<std::string>& parts) {
  const std::string text = refused(set);
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos)
        << "'" << part << "' not in: " << text;
  }
}

ClusterResolver tf_config(const std::string& text) {
  return resolve({{"TF_CONFIG", text}});
}

TEST(TfConfig, ReadsTheClusterAndTheTask) {
  const ClusterResolver r = tf_config(R"({
    "cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]},
    "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc",
    "environment": "cloud", "job": {"x": [1, {"y": 2}]}})");
  EXPECT_EQ(r.task, (TaskId{"worker", 1}));
  EXPECT_EQ(r.spec.task_address("worker", 1), "c:1");
  EXPECT_EQ(r.spec.num_tasks("ps"), 1);
  EXPECT_EQ(r.environment, "cloud");
  EXPECT_EQ(r.source, "TF_CONFIG");
  EXPECT_EQ(r.rpc_layer, "grpc");
  EXPECT_FALSE(r.alone());
}

TEST(TfConfig, TakesTheFormsThatLaunchersWrite) {
  // A sparse job with string indices, and an index in a string.
  ClusterResolver r = tf_config(R"({"cluster": {"worker": {"1": "b:1",
    "3": "d:1"}}, "task": {"type": "worker", "index": "3"}})");
  EXPECT_EQ(r.spec.task_indices("worker"), (std::vector<int>{1, 3}));
  EXPECT_EQ(r.task.index, 3);
  // Kubeflow's dynamic workers.
  r = tf_config(R"({"sparseCluster": {"worker": {"2": "w-2:2222"}, "ps": []},
    "task": {"type": "worker", "index": 2}})");
  EXPECT_EQ(r.spec.json(), R"({"worker":{"2":"w-2:2222"}})");
  // Old names of the chief.
  r = tf_config(R"({"cluster": {"master": ["a:1"], "worker": ["b:1"]},
    "task": {"type": "master", "index": 0, "trial": "1", "cloud": {}}})");
  EXPECT_EQ(r.task, (TaskId{"chief", 0}));
  EXPECT_EQ(r.spec.coordinator(), (TaskId{"chief", 0}));
  // The evaluator, outside the cluster and inside.
  r = tf_config(R"({"cluster": {"worker": ["a:1", "b:1"]},
    "task": {"type": "evaluator", "index": 0}})");
  EXPECT_EQ(r.task, (TaskId{"evaluator", 0}));
  r = tf_config(R"({"cluster": {"worker": ["a:1"], "evaluator": ["e:1"]},
    "task": {"type": "evaluator", "index": 0}})");
  EXPECT_EQ(r.spec.num_tasks("evaluator"), 1);
  // A single task need not be named.
  r = tf_config(R"({"cluster": {"worker": ["a:1"]}})");
  EXPECT_EQ(r.task, (TaskId{"worker", 0}));
  EXPECT_TRUE(r.alone());
  // A single replica.
  for (const char* text : {"{}", R"({"cluster": {}})",
                           R"({"task": {"type": "worker", "index": 0}})"}) {
    r = tf_config(text);
    EXPECT_TRUE(r.spec.empty() && r.notes.size() == 1) << text;
  }
}

TEST(TfConfig, RefusesEveryMistakeThatCanBeSeen) {
  const std::string two = R"("cluster": {"worker": ["a:1", "b:1"]})";
  struct Case {
    std::string text;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {"x", {"is not JSON", "byte 1"}},
      {"{'cluster': {}}", {"is not JSON", "double quotes"}},
      {R"({"cluster": )", {"it ends early"}},
      {"[1]", {"is [1]", "an object"}},
      {"{" + two + "}", {"no task.type", "2 tasks"}},
      {"{" + two + R"(, "task": "worker"})", {"task is \"worker\""}},
      {"{" + two + R"(, "task": {"type": 1}})", {"task.type is 1"}},
      {"{" + two + R"(, "task": {"type": "worker"}})", {"no task.index"}},
      {"{" + two + R"(, "task": {"type": "worker", "index": 2}})",
       {"task.index is 2", "cluster.worker has the tasks 0, 1"}},
      {"{" + two + R"(, "task": {"type": "worker", "index": -1}})",
       {"task.index is -1"}},
      {"{" + two + R"(, "task": {"type": "worker", "index": 1.0}})",
       {"task.index is 1.0"}},
      {"{" + two + R"(, "task": {"type": "worker", "index": true}})",
       {"task.index is true"}},
      {"{" + two + R"(, "task": {"type": "worker", "index": "one"}})",
       {"task.index is \"one\""}},
      {"{" + two + R"(, "task": {"type": "ps", "index": 0}})",
       {"task.type is \"ps\"", "its jobs are worker"}},
      {"{" + two + R"(, "task": {"type": "wroker", "index": 0}})",
       {"task.type", "write \"worker\""}},
      {"{" + two + R"(, "tasks": {}})", {"\"tasks\" is no key", "\"task\""}},
      {R"({"Cluster": {}})", {"write \"cluster\""}},
      {R"({"cluster_spec": {}})", {"write \"cluster\""}},
      {R"({"cluster": ["a:1"]})", {"cluster is [\"a:1\"]"}},
      {R"({"cluster": "{}"})", {"cluster is \"{}\""}},
      {R"({"cluster": {"worker": "a:1"}})", {"cluster.worker is \"a:1\""}},
      {R"({"cluster": {"worker": [1]}})", {"cluster.worker[0] is 1"}},
      {R"({"cluster": {"worker": {"x": "a:1"}}})",
       {"cluster.worker has the key \"x\""}},
      {R"({"cluster": {"worker": {"01": "a:1"}}})", {"the key \"01\""}},
      {R"({"cluster": {"worker": ["a"]}})",
       {"cluster.worker[0] is \"a\"", "has no port"}},
      {R"({"cluster": {"worker": ["a:1"], "worker": ["b:1"]}})",
       {"\"worker\" comes twice"}},
      {R"({"cluster": {"ps_hosts": ["a:1"]}})", {"write \"ps\""}},
      {R"({"cluster": {"worker": ["a:1"], "ps": ["b:1"]},
           "task": {"type": "ps", "index": 0}})",
       {"\"ps\" but no \"chief\""}},
      {R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"]},
           "task": {"type": "ps", "index": 0}})",
       {"no \"worker\""}},
      {R"({"cluster": {"worker": ["a:1"]}, "sparseCluster": {}})",
       {"\"cluster\" and \"sparseCluster\""}},
      {R"({"cluster": {"worker": ["a:1"]}, "rpc_layer": "grpc+verbs"})",
       {"rpc_layer is \"grpc+verbs\""}},
      {R"({"cluster": {"worker": ["a:1"]}, "environment": 3})",
       {"environment is 3"}},
      {std::string(1000, '['), {"nests too deep"}},
      {R"({"task": {"index": 5e999999}})", {"is not JSON", "5e999999"}},
  };
  for (const Case& c : cases) {
    expect_refused({{"TF_CONFIG", c.text}}, c.parts);
    expect_refused({{"TF_CONFIG", c.text}},
                   {"TF_CONFIG", "resolvers_test.cc:"});
  }
}

TEST(TfConfig, OptionsWinOverWhatItSays) {
  const Variables v(Set{{"TF_CONFIG", R"({"cluster": {"worker": ["a:1", "b:1"],
    "chief": ["c:1"]}, "task": {"type": "worker", "index": 1},
    "environment": "cloud"})"}});
  const ClusterResolver r = read_tf_config(
      v, {.task_type = "chief", .task_id = 0, .environment = "google"}, {});
  EXPECT_EQ(r.task, (TaskId{"chief", 0}));
  EXPECT_EQ(r.environment, "google");
  EXPECT_THROW(read_tf_config(v, {.task_id = 2}, {}), errors::InvalidArgument);
  EXPECT_THROW(read_tf_config(v, {.task_id = -1}, {}), errors::InvalidArgument);
  EXPECT_THROW(read_tf_config(v, {.rpc_layer = "x"}, {}),
               errors::InvalidArgument);
}

const char* const kVertex = R"({"cluster": {
  "workerpool0": ["cmle-training-workerpool0-ab-0:2222"],
  "workerpool1": ["cmle-training-workerpool1-ab-0:2222",
                  "cmle-training-workerpool1-ab-1:2222"],
  "workerpool2": {}, "workerpool3": ["cmle-training-workerpool3-ab-0:2222"]},
  "environment": "cloud", "task": {"type": "workerpool1", "index": 1,
  "trial": ""}})";

TEST(Vertex, PoolsAreJobs) {
  const ClusterResolver r = resolve({{"CLUSTER_SPEC", kVertex}});
  EXPECT_EQ(r.task, (TaskId{"worker", 1}));
  EXPECT_EQ(r.spec.jobs(),
            (std::vector<std::string>{"chief", "evaluator", "worker"}));
  EXPECT_EQ(r.environment, "cloud");
  EXPECT_EQ(r.source, "CLUSTER_SPEC");
  expect_refused({{"CLUSTER_SPEC", R"({"cluster": {"worker": ["a:1"]}})"}},
                 {"the key \"worker\"", "workerpool0"});
  expect_refused({{"CLUSTER_SPEC", R"({"cluster": {"workerpool0": ["a:1"]},
                   "task": {"type": "workerpool7", "index": 0}})"}},
                 {"task.type is \"workerpool7\""});
}

TEST(Vertex, ReductionServersAreNoParameterServers) {
  const std::string text = R"({"cluster": {"workerpool0": ["a:2222"],
    "workerpool1": ["b:2222"], "workerpool2": ["c:2222"]},
    "task": {"type": "workerpool0", "index": 0}, "job": {"workerPoolSpecs": [
    {}, {}, {"containerSpec": {"imageUri":
    "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    }}]}})";
  const ClusterResolver r = resolve({{"CLUSTER_SPEC", text}});
  EXPECT_EQ(r.spec.num_tasks("ps"), 0);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("reduction server"), std::string::npos);
}

TEST(Vertex, BothVariablesMustAgree) {
  const std::string cluster = R"("cluster": {
    "chief": ["cmle-training-workerpool0-ab-0:2222"],
    "worker": ["cmle-training-workerpool1-ab-0:2222",
               "cmle-training-workerpool1-ab-1:2222"]})";
  EXPECT_EQ(resolve({{"CLUSTER_SPEC", kVertex},
                     {"TF_CONFIG", "{" + cluster +
                                       R"(, "task": {"type": "worker",
                                       "index": 1}})"}})
                .source,
            "TF_CONFIG");
  expect_refused(
      {{"CLUSTER_SPEC", kVertex},
       {"TF_CONFIG",
        "{" + cluster + R"(, "task": {"type": "worker", "index": 0}})"}},
      {"TF_CONFIG says worker:0", "CLUSTER_SPEC says worker:1"});
}

Set slurm_step(const char* nodes, const char* tasks, const char* size,
               const char* node, const char* local) {
  return {{"SLURM_STEP_NODELIST", nodes}, {"SLURM_STEP_TASKS_PER_NODE", tasks},
          {"SLURM_STEP_NUM_TASKS", size}, {"SLURMD_NODENAME", node},
          {"SLURM_LOCALID", local},       {"SLURM_PROCID", "0"}};
}

TEST(Slurm, CountsNodeByNodeInTheOrderOfTheList) {
  const ClusterResolver r =
      resolve(slurm_step("n[9-10]", "2(x2)", "4", "n10", "1"));
  EXPECT_EQ(r.task, (TaskId{"worker", 3}));
  EXPECT_EQ(r.spec.json(), R"({"worker":{"0":"n9:8888","1":"n9:8889",)"
                           R"("2":"n10:8888","3":"n10:8889"}})");
  EXPECT_EQ(r.num_processes_of_host, 2);
  EXPECT_EQ(r.local_rank, 1);
  ASSERT_EQ(r.notes.size(), 1u);  // SLURM_PROCID is 0
}

TEST(Slurm, EveryTaskOfACyclicStepHasOnePlace) {
  // Three nodes with 2, 2 and 1 tasks; srun assigns ranks cyclically.
  const char* hosts[] = {"a", "b", "c", "a", "b"};
  const char* locals[] = {"0", "0", "0", "1", "1"};
  std::set<int> places;
  for (int i = 0; i < 5; ++i) {
    Set set = slurm_step("a,b,c", "2(x2),1", "5", hosts[i], locals[i]);
    set["SLURM_PROCID"] = std::to_string(i);
    const ClusterResolver r = resolve(set);
    places.insert(r.task.index);
    EXPECT_EQ(
        r.spec.task_address("worker", r.task.index),
        std::string(hosts[i]) + ":888" + (locals[i][0] == '0' ? "8" : "9"));
  }
  EXPECT_EQ(places.size(), 5u);
}

TEST(Slurm, RanksGoToJobsInTheirOrder) {
  const Variables v(slurm_step("n[1-4]", "1(x4)", "4", "n3", "0"));
  const ClusterResolver r = read_slurm(
      v, {.jobs = {{"ps", 1}, {"chief", 1}, {"worker", 2}}, .port_base = 2000},
      {});
  EXPECT_EQ(r.task, (TaskId{"worker", 0}));
  EXPECT_EQ(r.spec.task_address("ps", 0), "n1:2000");
  EXPECT_THROW(read_slurm(v, {.jobs = {{"worker", 3}}}, {}),
               errors::InvalidArgument);
  EXPECT_THROW(read_slurm(v, {.jobs = {{"worker", 5}}}, {}),
               errors::InvalidArgument);
  EXPECT_THROW(read_slurm(v, {.port_base = 65536}, {}),
               errors::InvalidArgument);
  EXPECT_THROW(read_slurm(v, {.tasks_per_node = {2, 2}}, {}),
               errors::InvalidArgument);
}

TEST(Slurm, RefusesVariablesThatDisagree) {
  expect_refused(slurm_step("n[1-2]", "1(x3)", "3", "n1", "0"),
                 {"SLURM_STEP_NODELIST has 2 nodes"});
  expect_refused(slurm_step("n[1-2]", "1(x2)", "3", "n1", "0"),
                 {"SLURM_STEP_NUM_TASKS is 3"});
  expect_refused(slurm_step("n[1-2]", "1(x2)", "2", "n1", "1"),
                 {"SLURM_LOCALID is \"1\""});
  expect_refused(slurm_step("n[1-2]", "1(x2)", "2", "n7", "0"),
                 {"SLURM_NODEID is not set"});
  expect_refused({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}},
                 {"SLURM_STEP_NODELIST is not"});
  expect_refused({{"SLURM_STEP_NUM_TASKS", "many"}}, {"\"many\""});
}

TEST(Torchrun, TheCoordinatorIsOnePortAboveTheStore) {
  const Set set = {{"RANK", "2"},         {"WORLD_SIZE", "4"},
                   {"LOCAL_RANK", "0"},   {"LOCAL_WORLD_SIZE", "2"},
                   {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};
  const ClusterResolver r = resolve(set);
  EXPECT_EQ(r.task, (TaskId{"worker", 2}));
  EXPECT_EQ(r.rendezvous, "n1:29501");
  EXPECT_EQ(r.spec.task_address("worker", 0), "n1:29501");
  EXPECT_EQ(r.spec.task_address("worker", 2), "");
  EXPECT_EQ(r.num_processes_of_host, 2);
  const auto with = [&](const char* name, const char* value) {
    Set changed = set;
    changed[name] = value;
    return changed;
  };
  EXPECT_EQ(resolve(with("MASTER_ADDR", "fe80::1")).rendezvous,
            "[fe80::1]:29501");
  expect_refused(with("RANK", "4"), {"RANK is \"4\"", "0 to 3"});
  expect_refused(with("WORLD_SIZE", "2000000000"), {"WORLD_SIZE"});
  expect_refused(with("MASTER_PORT", "65535"), {"MASTER_PORT"});
  expect_refused(with("MASTER_ADDR", ""), {"MASTER_ADDR is not"});
  expect_refused(with("MASTER_ADDR", "a b"), {"MASTER_ADDR"});
}

TEST(Mpi, NeedsToKnowWhereRank0Is) {
  Set set = {{"OMPI_COMM_WORLD_RANK", "1"},
             {"OMPI_COMM_WORLD_SIZE", "2"},
             {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
             {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  expect_refused(set, {"OMPI_COMM_WORLD_SIZE is 2", "BERTH_COORDINATOR"});
  set["BERTH_COORDINATOR"] = "n1:5000";
  EXPECT_EQ(resolve(set).rendezvous, "n1:5000");
  EXPECT_EQ(resolve(set).task, (TaskId{"worker", 1}));
  set["BERTH_COORDINATOR"] = "n1";
  expect_refused(set, {"BERTH_COORDINATOR is \"n1\""});
  // On one host the job's name is enough.
  set.erase("BERTH_COORDINATOR");
  set["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  set["PMIX_NAMESPACE"] = "1234@1";
  const std::string first = resolve(set).rendezvous;
  set["OMPI_COMM_WORLD_RANK"] = "0";
  EXPECT_EQ(resolve(set).rendezvous, first);
  EXPECT_TRUE(first.starts_with("127.0.0.1:2"));
  set["PMIX_NAMESPACE"] = "1235@1";
  EXPECT_NE(resolve(set).rendezvous, first);
  const ClusterResolver hydra =
      resolve({{"PMI_RANK", "1"},
               {"PMI_SIZE", "2"},
               {"MPI_LOCALRANKID", "1"},
               {"MPI_LOCALNRANKS", "2"},
               {"BERTH_COORDINATOR", "localhost:5000"}});
  EXPECT_EQ(hydra.local_rank, 1);
  EXPECT_EQ(hydra.source, "PMI_SIZE");
}

TEST(HostList, OneTaskPerHost) {
  Set set = {{"BERTH_HOSTS", "digits-[0-3].digits"},
             {"JOB_COMPLETION_INDEX", "2"}};
  ClusterResolver r = resolve(set);
  EXPECT_EQ(r.task, (TaskId{"worker", 2}));
  EXPECT_EQ(r.spec.task_address("worker", 2), "digits-2.digits:2222");
  set["BERTH_JOBS"] = "chief=1,worker=2,ps=1";
  set["BERTH_PORT"] = "3000";
  set["BERTH_TASK_INDEX"] = "3";
  r = resolve(set);
  EXPECT_EQ(r.task, (TaskId{"ps", 0}));
  EXPECT_EQ(r.spec.task_address("ps", 0), "digits-3.digits:3000");
  const auto with = [&](const char* name, const char* value) {
    Set changed = set;
    changed[name] = value;
    return changed;
  };
  expect_refused(with("BERTH_TASK_INDEX", "4"), {"BERTH_TASK_INDEX", "0 to 3"});
  expect_refused(with("BERTH_JOBS", "chief=1,worker=2"), {"3 tasks"});
  expect_refused(with("BERTH_JOBS", "worker"), {"BERTH_JOBS is \"worker\""});
  expect_refused(with("BERTH_JOBS", "wrk=4"), {"BERTH_JOBS", "\"wrk\""});
  expect_refused(with("BERTH_PORT", "0"), {"BERTH_PORT"});
  expect_refused(with("BERTH_HOSTS", "d-[0-"), {"BERTH_HOSTS"});
  expect_refused({{"BERTH_HOSTS", "a,b"}}, {"JOB_COMPLETION_INDEX"});
}

TEST(FromEnvironment, IsAloneWhereNobodySaysAnything) {
  const ClusterResolver r =
      resolve({{"JOB_COMPLETION_INDEX", "3"}, {"SLURM_PROCID", "0"}});
  EXPECT_TRUE(r.spec.empty() && r.alone() && r.source.empty());
  EXPECT_EQ(r.task, (TaskId{"worker", 0}));
}

TEST(FromEnvironment, FollowsTheInnermostLauncher) {
  // srun starts one torchrun per node.
  Set set = slurm_step("n[1-2]", "1(x2)", "2", "n2", "0");
  set["SLURM_PROCID"] = "1";
  for (const auto& [name, value] : Set{{"RANK", "5"},
                                       {"WORLD_SIZE", "8"},
                                       {"MASTER_ADDR", "n1"},
                                       {"MASTER_PORT", "29500"}}) {
    set[name] = value;
  }
  ClusterResolver r = resolve(set);
  EXPECT_EQ(r.task, (TaskId{"worker", 5}));
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("SLURM_PROCID=1"), std::string::npos);
  // srun --mpi sets both; Slurm knows addresses.
  set = slurm_step("n[1-2]", "1(x2)", "2", "n2", "0");
  set["SLURM_PROCID"] = set["PMI_RANK"] = "1";
  set["PMI_SIZE"] = "2";
  r = resolve(set);
  EXPECT_EQ(r.source, "SLURM_STEP_NODELIST");
  EXPECT_TRUE(r.notes.empty());
}

TEST(FromEnvironment, WarnsWhenAllTasksHaveOneIndex) {
  std::vector<std::string> ids;
  auto before = debugging::set_diagnostic_handler(
      [&](const debugging::Diagnostic& d) { ids.push_back(d.id); });
  Set set = slurm_step("n[1-2]", "1(x2)", "2", "n2", "0");
  set["TF_CONFIG"] = R"({"cluster": {"worker": ["n1:1", "n2:1"]},
                        "task": {"type": "worker", "index": 0}})";
  set["SLURM_PROCID"] = "0";
  EXPECT_TRUE(resolve(set).notes.empty());
  EXPECT_TRUE(ids.empty());
  set["SLURM_PROCID"] = "1";
  EXPECT_EQ(resolve(set).notes.size(), 1u);
  EXPECT_EQ(ids, std::vector<std::string>{"cluster-variables"});
  debugging::set_diagnostic_handler(before);
}

TEST(SimpleResolver, ChecksTheTask) {
  using namespace cluster_resolver;  // NOLINT
  const ClusterSpec spec({{"worker", {"a:1", "b:1"}}});
  EXPECT_EQ(SimpleClusterResolver(spec, "worker", 1).task.index, 1);
  EXPECT_EQ(SimpleClusterResolver(ClusterSpec({{"chief", {"a:1"}}})).task,
            (TaskId{"chief", 0}));
  EXPECT_TRUE(SimpleClusterResolver(ClusterSpec()).alone());
  EXPECT_THROW(SimpleClusterResolver(spec, "worker", 2),
               errors::InvalidArgument);
  EXPECT_THROW(SimpleClusterResolver(spec, "ps", 0), errors::InvalidArgument);
  EXPECT_THROW(SimpleClusterResolver(spec), errors::InvalidArgument);
}

TEST(UnionResolver, PutsClustersOneAfterAnother) {
  using namespace cluster_resolver;  // NOLINT
  const auto first =
      SimpleClusterResolver(ClusterSpec({{"worker", {"a:1", "b:1"}}}),
                            {.task_type = "worker", .task_id = 1});
  const auto second = SimpleClusterResolver(
      ClusterSpec({{"worker", {"c:1"}}, {"chief", {"d:1"}}}),
      {.task_type = "chief", .task_id = 0, .environment = "x"});
  const ClusterResolver all = UnionResolver({first, second});
  EXPECT_EQ(all.spec, ClusterSpec({{"worker", {"a:1", "b:1", "c:1"}},
                                   {"chief", {"d:1"}}}));
  EXPECT_EQ(all.task, (TaskId{"worker", 1}));
  EXPECT_EQ(all.environment, "x");
  EXPECT_EQ(UnionResolver({first, second}, {.task_id = 0}).task.index, 0);
  const auto sparse =
      SimpleClusterResolver(ClusterSpec::sparse({{"worker", {{1, "e:1"}}}}),
                            {.task_type = "worker", .task_id = 1});
  EXPECT_THROW(UnionResolver({first, sparse}), errors::InvalidArgument);
  EXPECT_THROW(UnionResolver({first, first}), errors::InvalidArgument);
  EXPECT_THROW(UnionResolver({}), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::cluster
