// Clusters described by what Kubernetes' controllers tell their pods: JobSet's
// names, and the variables that Kubeflow Trainer sets for torchrun.

#include <fmt/format.h>

#include "cluster/checks.h"
#include "cluster/variables.h"

namespace berth::cluster {

namespace {

// A replicated job: equal jobs of equally many pods.
struct ReplicatedJob {
  std::string name;
  int jobs = 0, pods = 0;
};

// Whether it can be a name of Kubernetes.
bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 253 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") ==
             std::string::npos;
}

std::vector<ReplicatedJob> read_replicated_jobs(const std::string& text,
                                                Site site) {
  const auto refuse_it = [&](const std::string& why) {
    refuse(fmt::format("BERTH_JOBSET is {}{}", in_quotes(text), why), site);
  };
  std::vector<ReplicatedJob> jobs;
  int64_t pods = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view entry = rest.substr(0, comma);
    const size_t equals = std::min(entry.find('='), entry.size());
    const size_t times = entry.find('x', equals);
    ReplicatedJob job{.name = std::string(entry.substr(0, equals))};
    if (times == std::string_view::npos || !is_name(job.name) ||
        !whole_number(entry.substr(equals + 1, times - equals - 1),
                      &job.jobs) ||
        !whole_number(entry.substr(times + 1), &job.pods) || job.jobs < 1 ||
        job.pods < 1) {
      refuse_it(
          "; expected the replicated jobs in the order of the JobSet, each "
          "with its replicas and the pods of each, such as "
          "\"chief=1x1,worker=2x4\"");
    }
    for (const ReplicatedJob& other : jobs) {
      if (other.name == job.name)
        refuse_it(": \"" + job.name + "\" comes twice");
    }
    pods += int64_t{job.jobs} * job.pods;
    if (pods > kMostTasks) {
      refuse_it(fmt::format("; expected at most {} pods", kMostTasks));
    }
    jobs.push_back(std::move(job));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return jobs;
}

std::string need_name(const Variables& v, const std::string& name, Site site) {
  const std::string text = v.get(name);
  if (!is_name(text)) {
    refuse(fmt::format("{} is {}; expected the name that Kubernetes gives the "
                       "pod as a label (docs/cluster.md)",
                       name, text.empty() ? "not set" : in_quotes(text)),
           site);
  }
  return text;
}

// Where this pod is among all, by its labels.
int rank_of_pod(const Variables& v, const std::vector<ReplicatedJob>& jobs,
                Site site) {
  const std::string own = need_name(v, "REPLICATED_JOB_NAME", site);
  int pods = 0, before = 0;  // pods and jobs of those before
  std::string names;
  for (const ReplicatedJob& job : jobs) {
    if (job.name != own) {
      names += (names.empty() ? "" : ", ") + job.name;
      pods += job.jobs * job.pods;
      before += job.jobs;
      continue;
    }
    const int index = v.number("JOB_INDEX", 0, job.jobs - 1, site);
    const int pod = v.number("JOB_COMPLETION_INDEX", 0, job.pods - 1, site);
    if (v.has("JOB_GLOBAL_INDEX") &&
        v.get("JOB_GLOBAL_INDEX") != std::to_string(before + index)) {
      refuse(fmt::format("JOB_GLOBAL_INDEX is {}, but by BERTH_JOBSET job {} "
                         "of {} is number {} of the JobSet; expected its "
                         "replicated jobs in their order there",
                         in_quotes(v.get("JOB_GLOBAL_INDEX")), index,
                         in_quotes(own), before + index),
             site);
    }
    return pods + index * job.pods + pod;
  }
  refuse(fmt::format("REPLICATED_JOB_NAME is {}, but BERTH_JOBSET has {}",
                     in_quotes(own), names),
         site);
}

}  // namespace

ClusterResolver read_jobset(const Variables& v, Site site) {
  ClusterResolver r{.task = {"worker", 0}};
  const std::string text = v.get("BERTH_JOBSET");
  if (text.empty()) {
    if (!v.has("JOBSET_NAME") || !v.has("REPLICATED_JOB_NAME")) return r;
    refuse(fmt::format(
               "JOBSET_NAME is {} and REPLICATED_JOB_NAME {}, but BERTH_JOBSET "
               "is not set; expected the JobSet's replicated jobs, such as "
               "\"worker=1x4\" for one job of 4 pods",
               in_quotes(v.get("JOBSET_NAME")),
               in_quotes(v.get("REPLICATED_JOB_NAME"))),
           site);
  }
  const std::vector<ReplicatedJob> jobs = read_replicated_jobs(text, site);
  const std::string name = need_name(v, "JOBSET_NAME", site);
  const std::string domain =
      v.has("JOBSET_SUBDOMAIN") ? need_name(v, "JOBSET_SUBDOMAIN", site) : name;
  const int port = port_of_tasks(v, site);
  std::vector<std::string> addresses;
  JobCounts counts = read_job_counts("BERTH_JOBS", v.get("BERTH_JOBS"), site);
  const bool by_name = counts.empty() && jobs.size() > 1;
  for (const ReplicatedJob& job : jobs) {
    if (by_name) counts.emplace_back(job.name, job.jobs * job.pods);
    for (int i = 0; i < job.jobs * job.pods; ++i) {
      addresses.push_back(fmt::format("{}-{}-{}-{}.{}:{}", name, job.name,
                                      i / job.pods, i % job.pods, domain,
                                      port));
    }
  }
  const int rank = rank_of_pod(v, jobs, site);
  r.spec = assign("BERTH_JOBSET", by_name ? "BERTH_JOBSET" : "BERTH_JOBS",
                  counts, addresses, rank, &r.task, site);
  r.source = "BERTH_JOBSET";
  check_resolver("BERTH_JOBSET", "BERTH_JOBSET: task", &r, site);
  return r;
}

ClusterResolver read_pod_rank(const Variables& v, Site site) {
  if (!v.has("PET_NNODES")) return {.task = {"worker", 0}};
  const int size = v.number("PET_NNODES", 1, kMostTasks, site);
  const int rank = size == 1 && !v.has("PET_NODE_RANK")
                       ? 0
                       : v.number("PET_NODE_RANK", 0, size - 1, site);
  std::string host = v.get("PET_MASTER_ADDR");
  if (host.empty() && size > 1) {
    refuse(fmt::format("PET_NNODES is {}, but PET_MASTER_ADDR is not set; "
                       "expected the host of pod 0",
                       size),
           site);
  }
  if (host.empty()) host = "localhost";  // unused
  const int port = size == 1 && !v.has("PET_MASTER_PORT")
                       ? 2222
                       : v.number("PET_MASTER_PORT", 1, kMostPort, site);
  const std::string address = with_port(host, port);
  parse_address("PET_MASTER_ADDR with PET_MASTER_PORT", address, site);
  ClusterResolver r = of_ranks("PET_NNODES", rank, size, address, site);
  if (v.has("BERTH_PORT")) {
    r.notes.push_back(fmt::format(
        "BERTH_PORT is {}, but under PET_NNODES pods listen at any free port, "
        "the first one at PET_MASTER_PORT",
        in_quotes(v.get("BERTH_PORT"))));
  }
  const std::string each = v.get("PET_NPROC_PER_NODE");
  if (each.empty() || each == "auto" || each == "cpu" || each == "gpu" ||
      each == "1") {
    return r;
  }
  const int processes = v.number("PET_NPROC_PER_NODE", 1, kMostTasks, site);
  r.notes.push_back(fmt::format(
      "PET_NPROC_PER_NODE is {}: without torchrun each of the {} pods is one "
      "task, which uses all devices of its pod",
      processes, size));
  return r;
}

}  // namespace berth::cluster
