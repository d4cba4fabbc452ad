// Fuzz target for launcher variables: any values give a valid cluster or an
// error.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "berth/debugging.h"
#include "berth/errors.h"
#include "cluster/variables.h"

namespace {

using berth::cluster::Variables;

void require(bool holds) {
  if (!holds) std::abort();
}

// Short names, so that inputs consist mostly of values.
constexpr std::pair<char, const char*> kNames[] = {
    {'T', "TF_CONFIG"},
    {'V', "CLUSTER_SPEC"},
    {'H', "BERTH_HOSTS"},
    {'J', "BERTH_JOBS"},
    {'P', "BERTH_PORT"},
    {'I', "JOB_COMPLETION_INDEX"},
    {'i', "BERTH_TASK_INDEX"},
    {'R', "RANK"},
    {'W', "WORLD_SIZE"},
    {'r', "LOCAL_RANK"},
    {'w', "LOCAL_WORLD_SIZE"},
    {'A', "MASTER_ADDR"},
    {'p', "MASTER_PORT"},
    {'O', "OMPI_COMM_WORLD_SIZE"},
    {'o', "OMPI_COMM_WORLD_RANK"},
    {'M', "PMI_SIZE"},
    {'m', "PMI_RANK"},
    {'N', "PMIX_NAMESPACE"},
    {'B', "BERTH_JOBSET"},
    {'n', "JOBSET_NAME"},
    {'a', "JOBSET_SUBDOMAIN"},
    {'j', "REPLICATED_JOB_NAME"},
    {'x', "JOB_INDEX"},
    {'g', "JOB_GLOBAL_INDEX"},
    {'E', "PET_NNODES"},
    {'e', "PET_NODE_RANK"},
    {'t', "PET_MASTER_ADDR"},
    {'q', "PET_MASTER_PORT"},
    {'f', "PET_NPROC_PER_NODE"},
    {'C', "BERTH_COORDINATOR"},
    {'S', "SLURM_STEP_NUM_TASKS"},
    {'L', "SLURM_STEP_NODELIST"},
    {'K', "SLURM_STEP_TASKS_PER_NODE"},
    {'D', "SLURMD_NODENAME"},
    {'d', "SLURM_NODEID"},
    {'l', "SLURM_LOCALID"},
    {'s', "SLURM_PROCID"}};

void check(const berth::cluster::ClusterResolver& r) {
  require(r.rpc_layer == "grpc");
  require(r.task.index >= 0);
  if (r.spec.empty()) return;
  require(!r.source.empty());
  require(r.spec.tasks().size() <= size_t{1} << 16);
  require(r.spec.hash() == r.spec.hash() && !r.spec.json().empty());
  if (r.task.job != "evaluator") {
    const std::string& own = r.spec.task_address(r.task.job, r.task.index);
    require(!own.empty() || !r.rendezvous.empty());
  }
  if (r.spec.ranks().empty()) return;
  const auto c = r.spec.coordinator();
  require(!r.spec.task_address(c.job, c.index).empty());
}

}  // namespace

// The input: lines of a letter and a value.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto quiet = berth::debugging::set_diagnostic_handler(
      [](const berth::debugging::Diagnostic&) {});
  std::map<std::string, std::string> set;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    for (const auto& [letter, name] : kNames) {
      if (letter == rest[0]) set[name] = rest.substr(1, end == 0 ? 0 : end - 1);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  try {
    check(berth::cluster::read_environment(Variables(set), {}));
  } catch (const berth::errors::InvalidArgument& e) {
    require(std::string_view(e.what()).size() < 4096);
  }
  return 0;
}
