// ClusterSpec: jobs, their tasks and addresses.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "berth/cluster.h"
#include "berth/errors.h"
#include "cluster/checks.h"

namespace berth::distribute {

ClusterSpec::ClusterSpec(std::map<std::string, std::vector<std::string>> jobs,
                         Site site) {
  cluster::Jobs by_index;
  for (auto& [job, addresses] : jobs) {
    std::map<int, std::string>& tasks = by_index[job];
    int index = 0;
    for (std::string& a : addresses) {
      tasks.emplace_hint(tasks.end(), index++, std::move(a));
    }
  }
  jobs_ = cluster::checked_jobs("ClusterSpec", by_index, site);
}

ClusterSpec ClusterSpec::sparse(
    std::map<std::string, std::map<int, std::string>> jobs, Site site) {
  ClusterSpec spec;
  spec.jobs_ = cluster::checked_jobs("ClusterSpec", jobs, site);
  return spec;
}

ClusterSpec ClusterSpec::of_workers(int count, std::string coordinator,
                                    Site site) {
  if (count < 1 || count > cluster::kMostTasks) {
    cluster::refuse(fmt::format("ClusterSpec: {} workers; expected 1 to {}",
                                count, cluster::kMostTasks),
                    site);
  }
  cluster::parse_address("ClusterSpec: the coordinator", coordinator, site);
  ClusterSpec spec;
  std::map<int, std::string>& workers = spec.jobs_["worker"];
  for (int i = 0; i < count; ++i) workers.emplace_hint(workers.end(), i, "");
  workers[0] = std::move(coordinator);
  return spec;
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : jobs_) names.push_back(job);
  return names;
}

int ClusterSpec::num_tasks(const std::string& job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : static_cast<int>(found->second.size());
}

std::vector<int> ClusterSpec::task_indices(const std::string& job) const {
  std::vector<int> indices;
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return indices;
  for (const auto& [index, address] : found->second) indices.push_back(index);
  return indices;
}

const std::string& ClusterSpec::task_address(const std::string& job,
                                             int index) const {
  const auto found = jobs_.find(job);
  if (found != jobs_.end() && found->second.contains(index)) {
    return found->second.at(index);
  }
  throw errors::InvalidArgument(
      fmt::format("{}:{} is no task of the cluster {}", job, index, json()));
}

std::vector<TaskId> ClusterSpec::ranks() const {
  std::vector<TaskId> tasks;
  for (const char* job : {"chief", "worker"}) {
    for (const int index : task_indices(job)) tasks.push_back({job, index});
  }
  return tasks;
}

std::vector<TaskId> ClusterSpec::tasks() const {
  std::vector<TaskId> tasks = ranks();
  for (const char* job : {"ps", "evaluator"}) {
    for (const int index : task_indices(job)) tasks.push_back({job, index});
  }
  return tasks;
}

TaskId ClusterSpec::coordinator() const {
  if (num_tasks("chief") > 0) return {"chief", 0};
  const std::vector<TaskId> all = ranks();
  return all.empty() ? TaskId{"worker", 0} : all[0];
}

uint64_t ClusterSpec::hash() const {
  uint64_t h = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : json()) {
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return h;
}

std::string ClusterSpec::json() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const auto& [job, tasks] : jobs_) {
    nlohmann::ordered_json& of = all[job] = nlohmann::ordered_json::object();
    for (const auto& [index, address] : tasks) {
      of[std::to_string(index)] = address;
    }
  }
  return all.dump();
}

}  // namespace berth::distribute
