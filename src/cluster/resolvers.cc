// The choice of a launcher, and the resolvers that do not need one.

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>

#include "base/diagnostics.h"
#include "base/environment.h"
#include "base/immortal.h"
#include "berth/errors.h"
#include "cluster/checks.h"
#include "cluster/unread.h"
#include "cluster/variables.h"

namespace berth::cluster {

namespace {

// A launcher's variables for this process, followed or not.
struct Said {
  std::string text;  // "SLURM_PROCID=1 and SLURM_STEP_NUM_TASKS=4"
  int rank = 0, size = 0;
};

std::optional<Said> said(const Variables& v, const char* rank,
                         const char* size) {
  Said s;
  if (!whole_number(v.get(size), &s.size)) return {};
  if (!whole_number(v.get(rank), &s.rank)) return {};
  s.text = fmt::format("{}={} and {}={}", rank, s.rank, size, s.size);
  return s;
}

std::optional<Said> said_by_mpi(const Variables& v) {
  const auto s = said(v, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  return s ? s : said(v, "PMI_RANK", "PMI_SIZE");
}

int place(const ClusterResolver& r) {
  const std::vector<TaskId> tasks = r.spec.tasks();
  return static_cast<int>(std::find(tasks.begin(), tasks.end(), r.task) -
                          tasks.begin());
}

// Notes the launchers that are not followed. Warns if they describe equally
// many tasks but another rank: most likely a variable is the same on all tasks.
void note_others(const Variables& v, ClusterResolver* r, bool warn, Site site) {
  const int size = static_cast<int>(r->spec.tasks().size());
  for (const auto& other : {said(v, "RANK", "WORLD_SIZE"), said_by_mpi(v),
                            said(v, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
                            said(v, "PET_NODE_RANK", "PET_NNODES")}) {
    if (!other || other->size <= 1) continue;
    if (other->size == size && other->rank == place(*r)) continue;
    const std::string text =
        fmt::format("{} is followed: this is {} of {} tasks; {} are not",
                    r->source, r->task.str(), size, other->text);
    r->notes.push_back(text);
    if (!warn || other->size != size) continue;
    report_once("cluster-variables " + text,
                {"cluster-variables", debugging::Severity::kWarning,
                 text + "; does every task get an index of its own?", site});
  }
}

// TF_CONFIG omits what Vertex starts besides training.
void check_both(const ClusterResolver& tf, const ClusterResolver& vertex,
                Site site) {
  const auto same_job = [&](const char* job) {
    for (const int i : tf.spec.task_indices(job)) {
      const std::vector<int> known = vertex.spec.task_indices(job);
      if (std::find(known.begin(), known.end(), i) == known.end() ||
          tf.spec.task_address(job, i) != vertex.spec.task_address(job, i)) {
        return false;
      }
    }
    return tf.spec.num_tasks(job) == vertex.spec.num_tasks(job);
  };
  if (tf.spec.empty() || vertex.spec.empty()) return;
  if (tf.task == vertex.task && same_job("chief") && same_job("worker")) return;
  refuse(fmt::format("TF_CONFIG says {} of {}, but CLUSTER_SPEC says {} of {}; "
                     "expected the same, or one of them alone",
                     tf.task.str(), tf.spec.json().substr(0, 300),
                     vertex.task.str(), vertex.spec.json().substr(0, 300)),
         site);
}

bool says_rank_and_size(const std::optional<Said>& a,
                        const std::optional<Said>& b) {
  return a && b && a->rank == b->rank && a->size == b->size;
}

}  // namespace

ClusterResolver read_environment(const Variables& v, Site site) {
  if (v.has("TF_CONFIG")) {
    ClusterResolver r = read_tf_config(v, {}, site);
    if (v.has("CLUSTER_SPEC")) check_both(r, read_vertex(v, {}, site), site);
    note_others(v, &r, !r.spec.empty(), site);
    return r;
  }
  if (v.has("CLUSTER_SPEC")) {
    ClusterResolver r = read_vertex(v, {}, site);
    note_others(v, &r, !r.spec.empty(), site);
    return r;
  }
  if (v.has("BERTH_HOSTS")) {
    ClusterResolver r = read_host_list(v, {}, site);
    note_others(v, &r, true, site);
    return r;
  }
  if (v.has("BERTH_JOBSET")) {
    ClusterResolver r = read_jobset(v, site);
    note_others(v, &r, true, site);
    return r;
  }
  ClusterResolver r = read_torchrun(v, site);
  const auto slurm = said(v, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  if (r.spec.empty() && !says_rank_and_size(said_by_mpi(v), slurm)) {
    r = read_mpi(v, site);
  }
  if (r.spec.empty()) {
    r = read_slurm(v, {}, site);
    if (!r.spec.empty()) return r;
    r = read_pod_rank(v, site);
  }
  if (r.spec.empty()) return read_jobset(v, site);
  note_others(v, &r, false, site);
  return r;
}

namespace {
std::atomic<bool> g_launcher_read{false};

// The values of TF_CONFIG and CLUSTER_SPEC at the last read by a resolver.
struct ReadLauncher {
  std::mutex mutex;
  std::map<std::string, std::string> texts;
};
constexpr const char* kLauncherVariables[] = {"TF_CONFIG", "CLUSTER_SPEC"};
ReadLauncher& read_launcher() {
  static ReadLauncher& one = immortal<ReadLauncher>();
  return one;
}

void launcher_is_read() {
  g_launcher_read = true;
  ReadLauncher& read = read_launcher();
  const std::lock_guard lock(read.mutex);
  for (const char* name : kLauncherVariables) {
    read.texts[name] = environment(name);
  }
}
}  // namespace

std::string launcher_text(const Variables& v) {
  try {
    const ClusterResolver r = read_environment(v, {});
    const size_t tasks = r.spec.empty() ? 0 : r.spec.tasks().size();
    if (tasks < 2 || r.task.job == "evaluator") return "";
    return fmt::format("{} says that this is {} of {} tasks", r.source,
                       r.task.str(), tasks);
  } catch (const errors::Error& e) {
    return fmt::format("a launcher's variables cannot be read ({})", e.what());
  }
}

std::string unread_launcher() {
  return g_launcher_read ? "" : launcher_text(Variables());
}

std::string late_launcher() {
  ReadLauncher& read = read_launcher();
  const std::lock_guard lock(read.mutex);
  for (const auto& [name, text] : read.texts) {
    const std::string now = environment(name.c_str());
    if (now.empty() || now == text) continue;
    const std::string says = launcher_text(Variables());
    return fmt::format("{} was set after it had been read{}{}", name,
                       says.empty() ? "" : ": now ", says);
  }
  return "";
}

}  // namespace berth::cluster

namespace berth::distribute::cluster_resolver {

namespace {

using cluster::Variables;

void override_by(const ResolverOptions& options, ClusterResolver* r) {
  if (!options.task_type.empty()) r->task.job = options.task_type;
  if (options.task_id) r->task.index = *options.task_id;
  if (!options.rpc_layer.empty()) r->rpc_layer = options.rpc_layer;
  if (!options.environment.empty()) r->environment = options.environment;
}

}  // namespace

ClusterResolver SimpleClusterResolver(ClusterSpec spec, std::string task_type,
                                      int task_id, Site site) {
  return SimpleClusterResolver(
      std::move(spec),
      ResolverOptions{.task_type = std::move(task_type), .task_id = task_id},
      site);
}

ClusterResolver SimpleClusterResolver(ClusterSpec spec, ResolverOptions options,
                                      Site site) {
  ClusterResolver r{.spec = std::move(spec), .task = {"worker", 0}};
  if (options.task_type.empty() && !r.spec.empty()) {
    const std::vector<TaskId> tasks = r.spec.tasks();
    if (tasks.size() > 1) {
      cluster::refuse(
          fmt::format("SimpleClusterResolver: no task_type; expected which of "
                      "the {} tasks this process is",
                      tasks.size()),
          site);
    }
    r.task = tasks[0];
  }
  override_by(options, &r);
  cluster::check_resolver("SimpleClusterResolver: the cluster",
                          "SimpleClusterResolver: task", &r, site);
  return r;
}

ClusterResolver UnionResolver(std::vector<ClusterResolver> resolvers,
                              ResolverOptions options, Site site) {
  if (resolvers.empty()) {
    cluster::refuse("UnionResolver: no resolvers; expected one or more", site);
  }
  ClusterResolver all = resolvers[0];
  cluster::Jobs jobs = all.spec.as_dict();
  for (size_t i = 1; i < resolvers.size(); ++i) {
    for (const auto& [job, tasks] : resolvers[i].spec.as_dict()) {
      std::map<int, std::string>& into = jobs[job];
      const auto dense = [](const std::map<int, std::string>& t) {
        return t.empty() || t.rbegin()->first == static_cast<int>(t.size()) - 1;
      };
      const bool append = dense(into) && dense(tasks);
      for (const auto& [index, address] : tasks) {
        const int at = append ? static_cast<int>(into.size()) : index;
        if (into.emplace(at, address).second) continue;
        cluster::refuse(fmt::format("UnionResolver: {}:{} is in two of the "
                                    "clusters; expected indices of its own in "
                                    "each",
                                    job, index),
                        site);
      }
    }
    if (all.environment.empty()) all.environment = resolvers[i].environment;
    all.notes.insert(all.notes.end(), resolvers[i].notes.begin(),
                     resolvers[i].notes.end());
  }
  all.spec = ClusterSpec::sparse(
      cluster::checked_jobs("UnionResolver: the cluster", jobs, site), site);
  override_by(options, &all);
  cluster::check_resolver("UnionResolver: the cluster", "UnionResolver: task",
                          &all, site);
  return all;
}

ClusterResolver TFConfigClusterResolver(ResolverOptions options, Site site) {
  cluster::launcher_is_read();
  return cluster::read_tf_config(Variables(), options, site);
}
ClusterResolver VertexClusterResolver(ResolverOptions options, Site site) {
  cluster::launcher_is_read();
  return cluster::read_vertex(Variables(), options, site);
}
ClusterResolver HostListClusterResolver(HostListOptions options, Site site) {
  cluster::launcher_is_read();
  return cluster::read_host_list(Variables(), options, site);
}
ClusterResolver SlurmClusterResolver(SlurmOptions options, Site site) {
  cluster::launcher_is_read();
  return cluster::read_slurm(Variables(), options, site);
}
ClusterResolver TorchrunClusterResolver(Site site) {
  cluster::launcher_is_read();
  return cluster::read_torchrun(Variables(), site);
}
ClusterResolver MPIClusterResolver(Site site) {
  cluster::launcher_is_read();
  return cluster::read_mpi(Variables(), site);
}
ClusterResolver from_environment(Site site) {
  cluster::launcher_is_read();
  return cluster::read_environment(Variables(), site);
}

}  // namespace berth::distribute::cluster_resolver
