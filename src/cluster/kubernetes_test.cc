// What pods are told by JobSet and by Kubeflow Trainer.

#include <gtest/gtest.h>

#include "berth/errors.h"
#include "cluster/variables.h"

namespace berth::cluster {
namespace {

using Pod = std::map<std::string, std::string>;

ClusterResolver resolve_pod(const Pod& pod) {
  return read_environment(Variables(pod), Site::here());
}

Pod with(Pod pod, const std::string& name, const std::string& value) {
  pod[name] = value;
  return pod;
}

void expect_pod_refused(const Pod& pod, const std::vector<std::string>& parts) {
  std::string text;
  try {
    resolve_pod(pod);
  } catch (const errors::InvalidArgument& e) {
    text = e.what();
  }
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos)
        << "'" << part << "' not in: " << text;
  }
}

// The environment of a pod as the downward API passes its labels.
Pod pod_of_jobset(const std::string& job, int index, int pod) {
  return {{"BERTH_JOBSET", "chief=1x1,worker=2x3,ps=1x2"},
          {"JOBSET_NAME", "digits"},
          {"REPLICATED_JOB_NAME", job},
          {"JOB_INDEX", std::to_string(index)},
          {"JOB_COMPLETION_INDEX", std::to_string(pod)}};
}

TEST(JobSet, PodsAreWhereTheHeadlessServiceNamesThem) {
  const ClusterResolver r = resolve_pod(pod_of_jobset("worker", 1, 2));
  EXPECT_EQ(r.source, "BERTH_JOBSET");
  EXPECT_EQ(r.task, (TaskId{"worker", 5}));
  EXPECT_EQ(r.spec.num_tasks("worker"), 6);
  EXPECT_EQ(r.spec.task_address("chief", 0), "digits-chief-0-0.digits:2222");
  EXPECT_EQ(r.spec.task_address("worker", 0), "digits-worker-0-0.digits:2222");
  EXPECT_EQ(r.spec.task_address("worker", 2), "digits-worker-0-2.digits:2222");
  EXPECT_EQ(r.spec.task_address("worker", 3), "digits-worker-1-0.digits:2222");
  EXPECT_EQ(r.spec.task_address("ps", 1), "digits-ps-0-1.digits:2222");
  EXPECT_EQ(resolve_pod(pod_of_jobset("chief", 0, 0)).task,
            (TaskId{"chief", 0}));
  EXPECT_EQ(resolve_pod(pod_of_jobset("ps", 0, 1)).task, (TaskId{"ps", 1}));
}

TEST(JobSet, EveryPodHasAPlaceOfItsOwnInOneCluster) {
  std::map<TaskId, uint64_t> hashes;
  for (const auto& [job, jobs, pods] :
       {std::tuple{"chief", 1, 1}, {"worker", 2, 3}, {"ps", 1, 2}}) {
    for (int i = 0; i < jobs * pods; ++i) {
      const auto r = resolve_pod(pod_of_jobset(job, i / pods, i % pods));
      EXPECT_TRUE(hashes.emplace(r.task, r.spec.hash()).second);
      EXPECT_EQ(r.spec.hash(), hashes.begin()->second);
    }
  }
  EXPECT_EQ(hashes.size(), 9u);
}

TEST(JobSet, ASubdomainAPortAndJobsCanBeGiven) {
  Pod pod = pod_of_jobset("node", 0, 3);
  pod["BERTH_JOBSET"] = "node=1x4";
  pod["JOBSET_SUBDOMAIN"] = "net";
  pod["BERTH_PORT"] = "3000";
  ClusterResolver r = resolve_pod(pod);
  EXPECT_EQ(r.task, (TaskId{"worker", 3}));
  EXPECT_EQ(r.spec.task_address("worker", 3), "digits-node-0-3.net:3000");
  pod["BERTH_JOBS"] = "chief=1,worker=3";
  r = resolve_pod(pod);
  EXPECT_EQ(r.task, (TaskId{"worker", 2}));
  EXPECT_EQ(r.spec.task_address("chief", 0), "digits-node-0-0.net:3000");
}

TEST(JobSet, TheNumberAmongAllJobsMustAgree) {
  const Pod pod = pod_of_jobset("worker", 1, 0);
  EXPECT_EQ(resolve_pod(with(pod, "JOB_GLOBAL_INDEX", "2")).task,
            (TaskId{"worker", 3}));
  expect_pod_refused(with(pod, "JOB_GLOBAL_INDEX", "1"),
                     {"JOB_GLOBAL_INDEX is \"1\"", "number 2", "BERTH_JOBSET"});
}

TEST(JobSet, RefusesEveryMistakeThatCanBeSeen) {
  const Pod pod = pod_of_jobset("worker", 1, 2);
  for (const char* shape : {"worker", "worker=4", "worker=2x", "worker=x2",
                            "worker=0x1", "worker=1x0", "=1x1", "a b=1x1",
                            "worker=1x2x3", ",worker=1x1", "Worker=1x1"}) {
    expect_pod_refused(
        with(pod, "BERTH_JOBSET", shape),
        {std::string("BERTH_JOBSET is \"") + shape, "chief=1x1,worker=2x4"});
  }
  expect_pod_refused(with(pod, "BERTH_JOBSET", "worker=1x1,worker=1x1"),
                     {"\"worker\" comes twice"});
  expect_pod_refused(with(pod, "BERTH_JOBSET", "worker=65536x65536"),
                     {"at most 65536 pods"});
  expect_pod_refused(with(pod, "BERTH_JOBSET", "chief=1x1,wrk=2x3"),
                     {"REPLICATED_JOB_NAME is \"worker\"", "chief, wrk"});
  expect_pod_refused(with(with(pod, "BERTH_JOBSET", "chief=1x1,wrk=2x3"),
                          "REPLICATED_JOB_NAME", "wrk"),
                     {"BERTH_JOBSET", "\"wrk\"", "worker"});
  expect_pod_refused(with(pod, "JOB_INDEX", "2"),
                     {"JOB_INDEX is \"2\"", "0 to 1"});
  expect_pod_refused(with(pod, "JOB_COMPLETION_INDEX", ""),
                     {"JOB_COMPLETION_INDEX is not set"});
  expect_pod_refused(with(pod, "JOBSET_NAME", ""), {"JOBSET_NAME is not set"});
  expect_pod_refused(with(pod, "JOBSET_NAME", "a/b"),
                     {"JOBSET_NAME is \"a/b\""});
  expect_pod_refused(with(pod, "JOBSET_SUBDOMAIN", "a b"),
                     {"JOBSET_SUBDOMAIN is \"a b\""});
  expect_pod_refused(with(pod, "BERTH_PORT", "70000"), {"BERTH_PORT"});
  expect_pod_refused(with(pod, "BERTH_JOBS", "worker=3"),
                     {"BERTH_JOBS", "3 tasks", "9"});
  expect_pod_refused(with(pod, "BERTH_JOBSET", ""),
                     {"JOBSET_NAME is \"digits\"", "BERTH_JOBSET is not set"});
  // Parameter servers need a chief.
  expect_pod_refused(with(pod, "BERTH_JOBSET", "ps=1x1,worker=2x3"),
                     {"BERTH_JOBSET", "chief"});
}

// What Kubeflow Trainer's torch plug-in sets for a TrainJob named "digits".
Pod pod_of_trainjob(int rank) {
  return {{"PET_NNODES", "4"},
          {"PET_NPROC_PER_NODE", "auto"},
          {"PET_NODE_RANK", std::to_string(rank)},
          {"PET_MASTER_ADDR", "digits-node-0-0.digits"},
          {"PET_MASTER_PORT", "29500"},
          {"JOB_COMPLETION_INDEX", std::to_string(rank)}};
}

TEST(TrainJob, APodIsATaskAndTheFirstCollectsTheAddresses) {
  const ClusterResolver r = resolve_pod(pod_of_trainjob(3));
  EXPECT_EQ(r.source, "PET_NNODES");
  EXPECT_EQ(r.task, (TaskId{"worker", 3}));
  EXPECT_EQ(r.spec.num_tasks("worker"), 4);
  EXPECT_EQ(r.rendezvous, "digits-node-0-0.digits:29500");
  EXPECT_TRUE(r.notes.empty());
  EXPECT_EQ(
      resolve_pod(with(pod_of_trainjob(3), "BERTH_PORT", "2222")).notes.size(),
      1u);
  EXPECT_EQ(resolve_pod(with(pod_of_trainjob(1), "PET_MASTER_ADDR", "fd00::7"))
                .rendezvous,
            "[fd00::7]:29500");
  // A TrainJob of one node, and what torchrun needs alone.
  EXPECT_TRUE(resolve_pod({{"PET_NNODES", "1"}}).alone());
}

TEST(TrainJob, ProcessesPerNodeAreTorchruns) {
  // The plug-in writes the number of cores where there are no GPUs.
  const auto r =
      resolve_pod(with(pod_of_trainjob(0), "PET_NPROC_PER_NODE", "8"));
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("PET_NPROC_PER_NODE is 8"), std::string::npos);
  EXPECT_EQ(r.spec.num_tasks("worker"), 4);
  // torchrun was started: its variables are followed.
  Pod pod = pod_of_trainjob(1);
  pod.insert({{"RANK", "9"},
              {"WORLD_SIZE", "32"},
              {"MASTER_ADDR", "digits-node-0-0.digits"},
              {"MASTER_PORT", "29500"}});
  EXPECT_EQ(resolve_pod(pod).task, (TaskId{"worker", 9}));
}

TEST(TrainJob, RefusesEveryMistakeThatCanBeSeen) {
  const Pod pod = pod_of_trainjob(3);
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"PET_NNODES", "1:4"},        {"PET_NNODES", "0"},
      {"PET_NNODES", "100000"},     {"PET_NODE_RANK", "4"},
      {"PET_NODE_RANK", "-1"},      {"PET_MASTER_PORT", "0"},
      {"PET_MASTER_PORT", "65536"}, {"PET_NPROC_PER_NODE", "all"},
      {"PET_NPROC_PER_NODE", "0"}};
  for (const auto& [name, value] : wrong) {
    expect_pod_refused(with(pod, name, value),
                       {std::string(name) + " is \"" + value + "\""});
  }
  expect_pod_refused(with(pod, "PET_NODE_RANK", ""),
                     {"PET_NODE_RANK is not set"});
  expect_pod_refused(with(pod, "PET_MASTER_ADDR", ""),
                     {"PET_NNODES is 4", "PET_MASTER_ADDR is not set"});
  expect_pod_refused(with(pod, "PET_MASTER_ADDR", "a b"), {"PET_MASTER_ADDR"});
  expect_pod_refused(with(pod, "PET_MASTER_PORT", ""),
                     {"PET_MASTER_PORT is not set"});
}

TEST(TrainJob, OtherLaunchersAreNoted) {
  Pod pod = pod_of_trainjob(1);
  pod["TF_CONFIG"] = R"({"cluster": {"worker": ["a:1", "b:1"]},
                         "task": {"type": "worker", "index": 0}})";
  const auto r = resolve_pod(pod);
  EXPECT_EQ(r.source, "TF_CONFIG");
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("PET_NODE_RANK=1"), std::string::npos);
}

}  // namespace
}  // namespace berth::cluster
