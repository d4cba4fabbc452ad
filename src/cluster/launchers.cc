// Clusters described by srun, torchrun, mpirun and host lists.

#include <fmt/format.h>

#include <algorithm>

#include "cluster/checks.h"
#include "cluster/node_list.h"
#include "cluster/variables.h"

namespace berth::cluster {

JobCounts read_job_counts(const std::string& what, const std::string& text,
                          Site site) {
  JobCounts counts;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view entry = rest.substr(0, comma);
    const size_t equals = entry.find('=');
    int count = 0;
    if (equals == std::string_view::npos ||
        !whole_number(entry.substr(equals + 1), &count)) {
      refuse(fmt::format("{} is {}; expected tasks per job such as "
                         "\"chief=1,worker=3\"",
                         what, in_quotes(text)),
             site);
    }
    counts.emplace_back(entry.substr(0, equals), count);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return counts;
}

ClusterSpec assign(const std::string& what, const std::string& jobs_what,
                   JobCounts counts, const std::vector<std::string>& addresses,
                   int rank, TaskId* task, Site site) {
  const int all = static_cast<int>(addresses.size());
  if (counts.empty()) counts = {{"worker", all}};
  Jobs jobs;
  int next = 0;
  for (const auto& [job, count] : counts) {
    const std::string name = job_name(jobs_what, job, site);
    std::map<int, std::string>& tasks = jobs[name];
    for (int i = 0; i < count && next < all; ++i, ++next) {
      const int index = static_cast<int>(tasks.size());
      tasks[index] = addresses[static_cast<size_t>(next)];
      if (next == rank) *task = {name, index};
    }
  }
  int64_t wanted = 0;
  for (const auto& [job, count] : counts) wanted += count;
  if (wanted != all) {
    refuse(fmt::format("{}: they have {} tasks in all, but there are {}",
                       jobs_what, wanted, all),
           site);
  }
  return ClusterSpec::sparse(checked_jobs(what, jobs, site), site);
}

namespace {

// The hosts of a step, and the number of tasks on each.
struct Step {
  std::vector<std::string> hosts;
  std::vector<int> tasks;
  int host = 0, local = 0;  // of this process
};

Step read_step(const Variables& v, const std::vector<int>& tasks_per_node,
               int size, Site site) {
  Step step;
  const auto need = [&](const char* name) {
    const std::string text = v.get(name);
    if (text.empty()) {
      refuse(fmt::format("SLURM_STEP_NUM_TASKS is set but {} is not; expected "
                         "both, as srun sets them",
                         name),
             site);
    }
    return text;
  };
  step.hosts = expand_node_list("SLURM_STEP_NODELIST",
                                need("SLURM_STEP_NODELIST"), site);
  step.tasks = tasks_per_node;
  if (step.tasks.empty()) {
    step.tasks = expand_counts("SLURM_STEP_TASKS_PER_NODE",
                               need("SLURM_STEP_TASKS_PER_NODE"), site);
  }
  int64_t sum = 0;
  for (const int n : step.tasks) sum += n;
  if (step.tasks.size() != step.hosts.size() || sum != size) {
    refuse(fmt::format("SLURM_STEP_TASKS_PER_NODE gives {} tasks on {} nodes, "
                       "SLURM_STEP_NODELIST has {} nodes and "
                       "SLURM_STEP_NUM_TASKS is {}; expected the same of all",
                       sum, step.tasks.size(), step.hosts.size(), size),
           site);
  }
  const auto found =
      std::find(step.hosts.begin(), step.hosts.end(), v.get("SLURMD_NODENAME"));
  const int hosts = static_cast<int>(step.hosts.size());
  step.host = found != step.hosts.end()
                  ? static_cast<int>(found - step.hosts.begin())
                  : v.number("SLURM_NODEID", 0, hosts - 1, site);
  step.local = v.number("SLURM_LOCALID", 0, step.tasks[step.host] - 1, site);
  return step;
}

}  // namespace

int Variables::number(const std::string& name, int least, int most,
                      Site site) const {
  const std::string text = get(name);
  int n = 0;
  if (whole_number(text, &n) && n >= least && n <= most) return n;
  refuse(fmt::format("{} is {}; expected a whole number from {} to {}", name,
                     text.empty() ? "not set" : in_quotes(text), least, most),
         site);
}

ClusterResolver read_slurm(const Variables& v,
                           const cluster_resolver::SlurmOptions& options,
                           Site site) {
  ClusterResolver r{.task = {"worker", 0}, .rpc_layer = options.rpc_layer};
  if (!v.has("SLURM_STEP_NUM_TASKS")) return r;
  const int size = v.number("SLURM_STEP_NUM_TASKS", 1, kMostTasks, site);
  const Step step = read_step(v, options.tasks_per_node, size, site);
  std::vector<std::string> addresses;
  int rank = step.local;
  for (size_t i = 0; i < step.hosts.size(); ++i) {
    const int last = options.port_base + step.tasks[i] - 1;
    if (options.port_base < 1 || last > kMostPort) {
      refuse(fmt::format("Slurm: port_base {} and {} tasks on {} give the port "
                         "{}; expected ports from 1 to {}",
                         options.port_base, step.tasks[i], step.hosts[i], last,
                         kMostPort),
             site);
    }
    if (static_cast<int>(i) < step.host) rank += step.tasks[i];
    for (int local = 0; local < step.tasks[i]; ++local) {
      addresses.push_back(
          fmt::format("{}:{}", step.hosts[i], options.port_base + local));
    }
  }
  r.spec = assign("SLURM_STEP_NODELIST", "Slurm: jobs", options.jobs, addresses,
                  rank, &r.task, site);
  r.source = "SLURM_STEP_NODELIST";
  r.num_processes_of_host = step.tasks[static_cast<size_t>(step.host)];
  r.local_rank = step.local;
  if (v.has("SLURM_PROCID") && v.get("SLURM_PROCID") != std::to_string(rank)) {
    r.notes.push_back(fmt::format(
        "SLURM_PROCID is {}: tasks are counted node by node, so this is {}",
        in_quotes(v.get("SLURM_PROCID")), r.task.str()));
  }
  check_resolver("SLURM_STEP_NODELIST", "Slurm: task", &r, site);
  return r;
}

ClusterResolver read_host_list(const Variables& v,
                               const cluster_resolver::HostListOptions& options,
                               Site site) {
  ClusterResolver r{.task = {"worker", 0}};
  const std::string hosts =
      options.hosts.empty() ? v.get("BERTH_HOSTS") : options.hosts;
  if (hosts.empty()) return r;
  const int port = options.port != 0 ? options.port : port_of_tasks(v, site);
  std::vector<std::string> addresses =
      expand_node_list("BERTH_HOSTS", hosts, site);
  for (std::string& a : addresses) a += fmt::format(":{}", port);
  const int most = static_cast<int>(addresses.size()) - 1;
  const char* by =
      v.has("BERTH_TASK_INDEX") ? "BERTH_TASK_INDEX" : "JOB_COMPLETION_INDEX";
  if (!options.index && !v.has(by)) {
    refuse(
        "BERTH_HOSTS is set, but neither BERTH_TASK_INDEX nor "
        "JOB_COMPLETION_INDEX; expected which of its hosts this is, from 0",
        site);
  }
  const int rank = options.index ? *options.index : v.number(by, 0, most, site);
  if (rank < 0 || rank > most) {
    refuse(fmt::format("the index is {}, but BERTH_HOSTS has {} hosts", rank,
                       addresses.size()),
           site);
  }
  const JobCounts counts = read_job_counts(
      "BERTH_JOBS", options.jobs.empty() ? v.get("BERTH_JOBS") : options.jobs,
      site);
  r.spec = assign("BERTH_HOSTS", "BERTH_JOBS", counts, addresses, rank, &r.task,
                  site);
  r.source = "BERTH_HOSTS";
  check_resolver("BERTH_HOSTS", "BERTH_HOSTS: task", &r, site);
  return r;
}

int port_of_tasks(const Variables& v, Site site) {
  return v.has("BERTH_PORT") ? v.number("BERTH_PORT", 1, kMostPort, site)
                             : 2222;
}

std::string with_port(const std::string& host, int port) {
  const bool bare = host.find(':') != std::string::npos && host[0] != '[';
  return fmt::format(fmt::runtime(bare ? "[{}]:{}" : "{}:{}"), host, port);
}

ClusterResolver of_ranks(const std::string& source, int rank, int size,
                         const std::string& coordinator, Site site) {
  ClusterResolver r;
  r.spec = ClusterSpec::of_workers(size, coordinator, site);
  r.task = {"worker", rank};
  r.source = source;
  r.rendezvous = coordinator;
  return r;
}

namespace {

// Derives a port from the name of an OpenMPI job, for tasks of one host.
int port_of(const std::string& name) {
  uint32_t h = 0x811c9dc5;  // FNV-1a
  for (const char c : name) {
    h = (h ^ static_cast<unsigned char>(c)) * 0x01000193;
  }
  return 20000 + static_cast<int>(h % 10000);
}

}  // namespace

ClusterResolver read_torchrun(const Variables& v, Site site) {
  if (!v.has("RANK") || !v.has("WORLD_SIZE")) return {.task = {"worker", 0}};
  const int size = v.number("WORLD_SIZE", 1, kMostTasks, site);
  const int rank = v.number("RANK", 0, size - 1, site);
  const std::string host = v.get("MASTER_ADDR");
  if (host.empty()) {
    refuse(
        "RANK and WORLD_SIZE are set, but MASTER_ADDR is not; expected the "
        "host of rank 0",
        site);
  }
  const int port = v.number("MASTER_PORT", 1, kMostPort - 1, site) + 1;
  const std::string address = with_port(host, port);
  parse_address("MASTER_ADDR with the port above MASTER_PORT", address, site);
  ClusterResolver r = of_ranks("WORLD_SIZE", rank, size, address, site);
  if (v.has("LOCAL_RANK") && v.has("LOCAL_WORLD_SIZE")) {
    r.num_processes_of_host = v.number("LOCAL_WORLD_SIZE", 1, size, site);
    r.local_rank = v.number("LOCAL_RANK", 0, r.num_processes_of_host - 1, site);
  }
  return r;
}

ClusterResolver read_mpi(const Variables& v, Site site) {
  const bool open = v.has("OMPI_COMM_WORLD_SIZE");
  const std::string sizes = open ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE";
  if (!v.has(sizes)) return {.task = {"worker", 0}};
  const int size = v.number(sizes, 1, kMostTasks, site);
  const int rank =
      v.number(open ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK", 0, size - 1, site);
  const std::string locals =
      open ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "MPI_LOCALNRANKS";
  const int of_host = v.has(locals) ? v.number(locals, 1, size, site) : 1;
  std::string coordinator = v.get("BERTH_COORDINATOR");
  if (!coordinator.empty()) {
    parse_address("BERTH_COORDINATOR", coordinator, site);
  } else if (size == 1) {
    coordinator = "localhost:8888";  // unused
  } else if (of_host == size && v.has("PMIX_NAMESPACE")) {
    coordinator = fmt::format("127.0.0.1:{}", port_of(v.get("PMIX_NAMESPACE")));
  } else {
    refuse(fmt::format("{} is {}, and MPI does not say where rank 0 is; "
                       "expected BERTH_COORDINATOR=host:port, the same on all "
                       "tasks, a port on rank 0's host that is free",
                       sizes, size),
           site);
  }
  ClusterResolver r = of_ranks(sizes, rank, size, coordinator, site);
  r.num_processes_of_host = of_host;
  const std::string local =
      open ? "OMPI_COMM_WORLD_LOCAL_RANK" : "MPI_LOCALRANKID";
  if (v.has(local)) r.local_rank = v.number(local, 0, of_host - 1, site);
  return r;
}

}  // namespace berth::cluster
