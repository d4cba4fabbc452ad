// Variables of launchers that are not followed are reported once.

#include "distribute/strategy/ignored_launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/diagnostics_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/cluster.h"
#include "berth/distribute.h"

namespace berth::distribute {
namespace {

using fresh_process::check;

constexpr const char* kTwoTasks =
    R"({"cluster": {"worker": ["a:1", "b:1"]},
        "task": {"type": "worker", "index": 1}})";

void launcher_ignored() {
  setenv("TF_CONFIG", kTwoTasks, 1);
  Heard heard;
  const MirroredStrategy one(StrategyOptions{.devices = {"/CPU:0"}});
  const std::string text = heard.text_of("launcher-ignored");
  check(text.find("TF_CONFIG says that this is worker:1 of 2 tasks, and "
                  "MirroredStrategy ignores that") == 0,
        text);
  check(text.find("ignored_launcher_test.cc:") != text.npos, text);
  note_ignored_launcher("fit", Site::here());
  check(heard.of("launcher-ignored").size() == 1, "once");
}
TEST(IgnoredLauncher, IsNamedWithWhatItSays) {
  IN_A_FRESH_PROCESS(launcher_ignored());
}

struct LauncherVariables {
  const char* name;
  std::vector<std::pair<const char*, const char*>> set;
  const char* says;  // how the warning begins
};

const LauncherVariables kLaunchers[] = {
    {"torchrun",
     {{"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"MASTER_ADDR", "a"},
      {"MASTER_PORT", "29500"}},
     "WORLD_SIZE says that this is worker:1 of 2 tasks, and MirroredStrategy "
     "ignores that"},
    {"srun",
     {{"SLURM_STEP_NUM_TASKS", "2"},
      {"SLURM_STEP_NODELIST", "n[1-2]"},
      {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
      {"SLURMD_NODENAME", "n2"},
      {"SLURM_LOCALID", "0"}},
     "SLURM_STEP_NODELIST says that this is worker:1 of 2 tasks, and "
     "MirroredStrategy ignores that"},
    {"mpirun of OpenMPI",
     {{"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "2"},
      {"BERTH_COORDINATOR", "a:1234"}},
     "OMPI_COMM_WORLD_SIZE says that this is worker:1 of 2 tasks, and "
     "MirroredStrategy ignores that"},
    {"mpirun of MPICH",
     {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"BERTH_COORDINATOR", "a:1234"}},
     "PMI_SIZE says that this is worker:1 of 2 tasks, and MirroredStrategy "
     "ignores that"},
    {"mpirun without a coordinator",
     {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
     "a launcher's variables cannot be read (OMPI_COMM_WORLD_SIZE is 2"},
    {"a list of hosts",
     {{"BERTH_HOSTS", "a,b"}, {"BERTH_TASK_INDEX", "1"}},
     "BERTH_HOSTS says that this is worker:1 of 2 tasks, and MirroredStrategy "
     "ignores that"},
    {"an indexed Job",
     {{"BERTH_HOSTS", "a-[0-1].b"}, {"JOB_COMPLETION_INDEX", "1"}},
     "BERTH_HOSTS says that this is worker:1 of 2 tasks, and MirroredStrategy "
     "ignores that"},
    {"Vertex AI",
     {{"CLUSTER_SPEC",
       R"({"cluster": {"workerpool0": ["a:1"], "workerpool1": ["b:1"]},
           "task": {"type": "workerpool1", "index": 0}})"}},
     "CLUSTER_SPEC says that this is worker:0 of 2 tasks, and "
     "MirroredStrategy ignores that"},
};

void launcher_of_others(const LauncherVariables& launcher) {
  for (const auto& [name, value] : launcher.set) setenv(name, value, 1);
  Heard heard;
  const MirroredStrategy one(StrategyOptions{.devices = {"/CPU:0"}});
  const std::string text = heard.text_of("launcher-ignored");
  check(text.find(launcher.says) == 0, launcher.name + (": " + text));
}
TEST(IgnoredLauncher, IsNamedWhoeverSetsTheVariables) {
  for (const LauncherVariables& launcher : kLaunchers) {
    IN_A_FRESH_PROCESS(launcher_of_others(launcher));
  }
}

void launcher_followed() {
  setenv("TF_CONFIG", kTwoTasks, 1);
  Heard heard;
  cluster_resolver::from_environment(Site::here());
  note_ignored_launcher("fit", Site::here());
  check(heard.of("launcher-ignored").empty(), "it was read");
}
TEST(IgnoredLauncher, IsNotSaidOfOneThatWasRead) {
  IN_A_FRESH_PROCESS(launcher_followed());
}

void launcher_too_late() {
  unsetenv("TF_CONFIG");
  unsetenv("CLUSTER_SPEC");
  Heard heard;
  cluster_resolver::from_environment(Site::here());
  note_late_launcher("fit", Site::here());
  check(heard.of("launcher-late").empty(), "nothing was set");
  setenv("TF_CONFIG", kTwoTasks, 1);
  note_late_launcher("fit", Site::here());
  const std::string text = heard.text_of("launcher-late");
  check(text.find("TF_CONFIG was set after it had been read: now TF_CONFIG "
                  "says that this is worker:1 of 2 tasks; fit follows") == 0,
        text);
}
TEST(IgnoredLauncher, IsSaidToComeTooLate) {
  IN_A_FRESH_PROCESS(launcher_too_late());
}

void launcher_of_one() {
  setenv("TF_CONFIG", R"({"cluster": {"worker": ["a:1"]},
                          "task": {"type": "worker", "index": 0}})",
         1);
  Heard heard;
  note_ignored_launcher("fit", Site::here());
  check(heard.of("launcher-ignored").empty(), "one task");
  unsetenv("TF_CONFIG");
  note_ignored_launcher("fit", Site::here());
  check(heard.of("launcher-ignored").empty(), "nothing is set");
}
TEST(IgnoredLauncher, IsNotSaidOfOneTaskOrNone) {
  IN_A_FRESH_PROCESS(launcher_of_one());
}

void launcher_of_nonsense() {
  setenv("TF_CONFIG", "{", 1);
  Heard heard;
  note_ignored_launcher("fit", Site::here());
  check(
      heard.text_of("launcher-ignored").find("TF_CONFIG") != std::string::npos,
      heard.text_of("launcher-ignored"));
}
TEST(IgnoredLauncher, ThatCannotBeReadIsNamedToo) {
  IN_A_FRESH_PROCESS(launcher_of_nonsense());
}

}  // namespace
}  // namespace berth::distribute
