#include "cli/launch_plan.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/pretended_cores.h"
#include "berth/errors.h"
#include "cli/commands.h"

namespace berth::cli {

namespace {

using distribute::ClusterSpec;
using distribute::TaskId;

constexpr int kMostLaunched = 1000;

// Variables of other launchers; they must not reach a cluster started here.
constexpr const char* kOfLaunchers[] = {"TF_CONFIG",
                                        "CLUSTER_SPEC",
                                        "BERTH_HOSTS",
                                        "BERTH_JOBSET",
                                        "BERTH_JOBS",
                                        "BERTH_PORT",
                                        "BERTH_TASK_INDEX",
                                        "BERTH_RESTART_COUNT",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMI_FD",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_STEP_TASKS_PER_NODE"};

bool of_another_launcher(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  return name.starts_with("OMPI_COMM_WORLD_") || name.starts_with("PMIX_") ||
         name.starts_with("PET_") ||
         std::find(std::begin(kOfLaunchers), std::end(kOfLaunchers), name) !=
             std::end(kOfLaunchers);
}

void check_counts(const LaunchOptions& o) {
  if (o.workers < 0 || o.ps < 0 || o.workers + o.ps > kMostLaunched) {
    throw UsageError(
        fmt::format("launch: {} workers and {} parameter servers; "
                    "expected 0 to {} in all",
                    o.workers, o.ps, kMostLaunched));
  }
  if (o.workers == 0 && (o.ps > 0 || !o.chief)) {
    throw UsageError("launch: --workers 0; expected one or more");
  }
}

// Assigns cores as the user lists them, one set per task.
void give_listed_cores(const std::string& text, LaunchPlan* plan) {
  size_t at = 0;
  std::string_view rest = text;
  for (LaunchTask& task : plan->tasks) {
    const size_t cut = std::min(rest.find('/'), rest.size());
    try {
      task.cores = CoreSet::parse(rest.substr(0, cut));
    } catch (const errors::InvalidArgument& e) {
      throw UsageError(std::string("launch: --cores: ") + e.what());
    }
    ++at;
    if (cut == rest.size()) break;
    rest.remove_prefix(cut + 1);
  }
  const auto parts = std::count(text.begin(), text.end(), '/') + 1;
  if (at != plan->tasks.size() ||
      static_cast<size_t>(parts) != plan->tasks.size()) {
    throw UsageError(
        fmt::format("launch: --cores {} has {} parts; expected "
                    "\"even\", \"all\", or one part for each of "
                    "the {} tasks",
                    text, parts, plan->tasks.size()));
  }
}

// Gives every task its own cores; if too few, only tasks that compute.
void give_even_cores(const CoreSet& allowed, LaunchPlan* plan) {
  std::vector<LaunchTask*> owners;
  for (LaunchTask& t : plan->tasks) owners.push_back(&t);
  if (static_cast<int>(owners.size()) > allowed.size()) {
    const bool servers = plan->spec.num_tasks("ps") > 0;
    std::erase_if(owners, [&](const LaunchTask* t) {
      return t->id.job != "worker" && (servers || t->id.job != "chief");
    });
    plan->cores_note = fmt::format(
        "{} tasks on {} cores: {}", plan->tasks.size(), allowed.size(),
        static_cast<int>(owners.size()) <= allowed.size()
            ? "those that compute have cores of their own, the others share all"
            : "they share all");
  }
  if (owners.empty() || static_cast<int>(owners.size()) > allowed.size()) {
    return;
  }
  const std::vector<CoreSet> parts =
      allowed.split(static_cast<int>(owners.size()));
  for (size_t i = 0; i < owners.size(); ++i) owners[i]->cores = parts[i];
}

// BERTH_HTTP_PORT of a task: its place in the plan after the port that is
// given, since all are on one machine.
std::string own_http_port(std::string_view variable, const LaunchPlan& plan,
                          const LaunchTask& task) {
  const size_t at = variable.find_last_of("=:") + 1;
  int port = 0;
  const char* const end = variable.data() + variable.size();
  const auto [rest, error] = std::from_chars(&variable[0] + at, end, port);
  if (error != std::errc() || rest != end || port <= 0) {
    return std::string(variable);  // the task says what is wrong
  }
  const auto place =
      std::find_if(plan.tasks.begin(), plan.tasks.end(),
                   [&](const LaunchTask& t) { return t.id == task.id; });
  return fmt::format("{}{}", variable.substr(0, at),
                     port + (place - plan.tasks.begin()));
}

}  // namespace

int ports_needed(const LaunchOptions& o) {
  check_counts(o);
  return (o.chief || o.ps > 0 ? 1 : 0) + o.workers + o.ps;
}

LaunchPlan plan_launch(const LaunchOptions& o, const std::vector<int>& ports,
                       const CoreSet& allowed) {
  check_counts(o);
  LaunchPlan plan;
  std::map<std::string, std::vector<std::string>> jobs;
  size_t next = 0;
  const auto add = [&](const char* job, int count) {
    for (int i = 0; i < count; ++i) {
      jobs[job].push_back(fmt::format("127.0.0.1:{}", ports.at(next++)));
      plan.tasks.push_back({{job, i}, jobs[job].back(), {}});
    }
  };
  add("chief", o.chief || o.ps > 0 ? 1 : 0);
  add("worker", o.workers);
  add("ps", o.ps);
  plan.spec = ClusterSpec(std::move(jobs), {});
  if (o.evaluator) plan.tasks.push_back({{"evaluator", 0}, "", {}});
  if (o.cores == "even") {
    give_even_cores(allowed, &plan);
  } else if (o.cores != "all") {
    give_listed_cores(o.cores, &plan);
  }
  return plan;
}

std::string new_secret() {
  std::array<unsigned char, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    throw errors::Internal("launch: no random bytes for the cluster's secret");
  }
  std::string text;
  for (const unsigned char b : bytes) text += fmt::format("{:02x}", b);
  return text;
}

std::string tf_config_text(const LaunchPlan& plan, const LaunchTask& task) {
  nlohmann::ordered_json cluster = nlohmann::ordered_json::object();
  for (const TaskId& t : plan.spec.tasks()) {
    cluster[t.job].push_back(plan.spec.task_address(t.job, t.index));
  }
  const nlohmann::ordered_json all = {
      {"cluster", cluster},
      {"task", {{"type", task.id.job}, {"index", task.id.index}}},
      {"rpc_layer", "grpc"}};
  return all.dump();
}

// "fit.pftrace" -> "fit.worker-0.pftrace".
std::string profile_of_task(const std::string& file, const TaskId& task) {
  const std::filesystem::path path(file);
  const std::string name =
      fmt::format("{}.{}-{}{}", path.stem().string(), task.job, task.index,
                  path.extension().string());
  return (path.parent_path() / name).string();
}

std::vector<std::string> launch_environment(const LaunchOptions& options,
                                            const LaunchPlan& plan,
                                            const LaunchTask& task,
                                            const std::string& secret,
                                            int restart,
                                            const char* const* inherited) {
  std::vector<std::string> all;
  for (; inherited != nullptr && *inherited != nullptr; ++inherited) {
    const std::string_view variable = *inherited;
    if (of_another_launcher(variable) ||
        (!secret.empty() && variable.starts_with("BERTH_CLUSTER_SECRET=")) ||
        (!options.devices.empty() && variable.starts_with("BERTH_DEVICES=")) ||
        (!task.cores.empty() && variable.starts_with("BERTH_CORES="))) {
      continue;
    }
    constexpr std::string_view kSnapshot = "BERTH_MEMORY_SNAPSHOT=";
    if (variable.starts_with(kSnapshot) && variable != kSnapshot) {
      const std::string file(variable.substr(kSnapshot.size()));
      all.push_back(std::string(kSnapshot) + profile_of_task(file, task.id));
      continue;
    }
    if (variable.starts_with("BERTH_HTTP_PORT=")) {
      all.push_back(own_http_port(variable, plan, task));
      continue;
    }
    all.emplace_back(variable);
  }
  all.push_back("TF_CONFIG=" + tf_config_text(plan, task));
  all.push_back(fmt::format("BERTH_RESTART_COUNT={}", restart));
  if (!secret.empty()) all.push_back("BERTH_CLUSTER_SECRET=" + secret);
  if (!options.devices.empty()) {
    all.push_back("BERTH_DEVICES=" + options.devices);
  }
  if (!options.profile.empty()) {
    all.push_back("BERTH_PROFILE=" + profile_of_task(options.profile, task.id));
  }
  // Pretended cores cannot be bound to, so the task is only told of them.
  if (!task.cores.empty() && pretended_cores() != nullptr) {
    all.push_back("BERTH_CORES=" + task.cores.str());
  }
  return all;
}

bool decides_the_end(const LaunchPlan& plan, const TaskId& task) {
  if (task.job == "chief") return true;
  return task.job == "worker" && plan.spec.num_tasks("ps") == 0;
}

}  // namespace berth::cli
