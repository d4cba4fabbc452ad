// berth cluster: what this process knows of its cluster, and which tasks it can
// reach.

#include "berth/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/environment.h"
#include "berth/errors.h"
#include "cli/cluster_reach.h"
#include "cli/commands.h"

namespace berth::cli {

namespace {

using distribute::ClusterResolver;
using distribute::TaskId;

struct ClusterArguments {
  bool check = false, json = false;
  double timeout_seconds = 3;
};

// The findings of `berth cluster`.
struct ClusterSurvey {
  ClusterResolver resolver;
  std::vector<Reached> tasks;
  std::vector<std::string> notes;
  std::string port_error;
  bool secret = false;
};

int rank_of(const ClusterResolver& r) {
  const std::vector<TaskId> ranks = r.spec.ranks();
  const auto found = std::find(ranks.begin(), ranks.end(), r.task);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

ClusterResolver understand() {
  try {
    return distribute::cluster_resolver::from_environment({});
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(e.what());
  }
}

ClusterSurvey survey_cluster(const ClusterArguments& o) {
  ClusterSurvey s{.resolver = understand()};
  s.notes = s.resolver.notes;
  s.secret = !environment("BERTH_CLUSTER_SECRET").empty() ||
             !environment("BERTH_CLUSTER_SECRET_FILE").empty();
  if (o.check) {
    s.port_error = own_port_error(s.resolver);
    s.tasks = reach_all(s.resolver, o.timeout_seconds);
    find_duplicates(s.resolver.source, s.tasks);
    for (std::string& note : reach_notes(s.tasks)) {
      s.notes.push_back(std::move(note));
    }
    return s;
  }
  for (const TaskId& t : s.resolver.spec.tasks()) {
    s.tasks.push_back(
        {.task = t, .address = s.resolver.spec.task_address(t.job, t.index)});
  }
  return s;
}

// Returns whether waiting for the others can help.
bool may_start(const ClusterSurvey& s) {
  return s.port_error.empty() &&
         std::none_of(s.tasks.begin(), s.tasks.end(), [](const Reached& r) {
           return r.state == Reach::kNoName || r.state == Reach::kNoAnswer ||
                  r.state == Reach::kUnreachable ||
                  r.state == Reach::kStranger || r.state == Reach::kDuplicate;
         });
}

nlohmann::ordered_json cluster_json(const ClusterSurvey& s, bool check) {
  const ClusterResolver& r = s.resolver;
  nlohmann::ordered_json all = {
      {"source", r.source},
      {"task", r.task.str()},
      {"rank", rank_of(r)},
      {"num_ranks", r.spec.ranks().size()},
      {"alone", r.alone()},
      {"coordinator", r.spec.empty() ? "" : r.spec.coordinator().str()},
      {"rendezvous", r.rendezvous},
      {"cluster", nlohmann::ordered_json::parse(r.spec.json())},
      {"rpc_layer", r.rpc_layer},
      {"environment", r.environment},
      {"local_rank", r.local_rank},
      {"num_processes_of_host", r.num_processes_of_host},
      {"hash", fmt::format("{:016x}", r.spec.hash())},
      {"secret", s.secret},
      {"notes", s.notes}};
  if (!check) return all;
  all["own_port_error"] = s.port_error;
  for (const Reached& t : s.tasks) {
    all["tasks"].push_back({{"task", t.task.str()},
                            {"address", t.address},
                            {"state", reach_name(t.state)},
                            {"why", t.why},
                            {"ips", t.ips},
                            {"ms", t.milliseconds}});
  }
  return all;
}

void print_cluster(const ClusterSurvey& s, bool check) {
  const ClusterResolver& r = s.resolver;
  if (r.source.empty()) {
    fmt::print("no launcher has set anything: this process is alone\n");
  } else if (r.spec.empty()) {
    fmt::print("{}: this process is alone, as {}\n", r.source, r.task.str());
  } else {
    const int rank = rank_of(r);
    fmt::print(
        "{}: this is {}{}\n", r.source, r.task.str(),
        rank < 0 ? ", which does not train"
                 : fmt::format(", rank {} of {}", rank, r.spec.ranks().size()));
  }
  size_t wide = 0;
  for (const Reached& t : s.tasks) wide = std::max(wide, t.address.size());
  for (const Reached& t : s.tasks) {
    std::string line = fmt::format("  {:<13}{:<{}}", t.task.str(),
                                   t.address.empty() ? "?" : t.address, wide);
    if (t.task == r.spec.coordinator()) line += "  coordinator";
    if (check) line += "  " + t.why;
    if (t.state == Reach::kReached) {
      line += fmt::format(" in {:.1f} ms", t.milliseconds);
    }
    fmt::print("{}\n", line);
  }
  if (!s.port_error.empty()) fmt::print("this task's {}\n", s.port_error);
  if (!r.rendezvous.empty()) {
    fmt::print("addresses are collected at {}\n", r.rendezvous);
  }
  if (!r.alone()) {
    fmt::print("{}\n",
               s.secret ? "the secret of the cluster is set"
                        : "no secret: only loopback addresses are served and "
                          "dialled; set BERTH_CLUSTER_SECRET or "
                          "BERTH_CLUSTER_SECRET_FILE on all tasks");
  }
  for (const std::string& note : s.notes) fmt::print("note: {}\n", note);
}

void run_cluster_command(const ClusterArguments& o) {
  if (!(o.timeout_seconds > 0 && o.timeout_seconds <= 3600)) {
    throw UsageError("cluster: --timeout takes seconds, above 0 to 3600");
  }
  const ClusterSurvey s = survey_cluster(o);
  if (o.json) {
    fmt::print("{}\n",
               cluster_json(s, o.check)
                   .dump(-1, ' ', false,
                         nlohmann::ordered_json::error_handler_t::replace));
  } else {
    print_cluster(s, o.check);
  }
  if (o.check && !may_start(s)) throw CLI::RuntimeError(1);
}

}  // namespace

void add_cluster(CLI::App& program) {
  auto o = std::make_shared<ClusterArguments>();
  CLI::App* command = program.add_subcommand(
      "cluster", "Says which task of which cluster this process is");
  command->add_flag("--check", o->check,
                    "resolve all names and dial all addresses; exit code 1 "
                    "when one cannot be reached by waiting");
  command->add_option("--timeout", o->timeout_seconds,
                      "seconds that --check takes at most (3)");
  command->add_flag("--json", o->json, "as a line of JSON (docs/json.md)");
  command->callback([o] { run_cluster_command(*o); });
}

}  // namespace berth::cli
