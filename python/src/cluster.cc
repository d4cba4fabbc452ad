// Clusters: resolvers (tf.distribute.cluster_resolver), of which Python has the
// classes (berth/_resolvers.py).

#include <nanobind/stl/pair.h>

#include "classes.h"
#include "convert.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using distribute::ClusterResolver;
using distribute::ClusterSpec;
namespace resolvers = distribute::cluster_resolver;

using JobMap = std::map<std::string, std::map<int, std::string>>;

resolvers::ResolverOptions resolver_options(const std::string& type,
                                            std::optional<int> id,
                                            const std::string& rpc_layer,
                                            const std::string& environment) {
  return {.task_type = type,
          .task_id = id,
          .rpc_layer = rpc_layer,
          .environment = environment};
}

void add_fields(nb::module_& m) {
  nb::class_<ClusterResolver>(m, "ClusterResolver")
      .def_prop_ro("jobs",
                   [](const ClusterResolver& r) { return r.spec.as_dict(); })
      .def_prop_ro("task_type",
                   [](const ClusterResolver& r) { return r.task.job; })
      .def_prop_ro("task_id",
                   [](const ClusterResolver& r) { return r.task.index; })
      .def_prop_ro("rpc_layer",
                   [](const ClusterResolver& r) { return r.rpc_layer; })
      .def_prop_ro("environment",
                   [](const ClusterResolver& r) { return r.environment; })
      .def_prop_ro("source", [](const ClusterResolver& r) { return r.source; })
      .def_prop_ro("notes", [](const ClusterResolver& r) { return r.notes; });
}

}  // namespace

void add_cluster(nb::module_& m) {
  add_fields(m);
  m.def("environment_resolver",
        [] { return resolvers::from_environment(site_of_caller()); });
  m.def(
      "tf_config_resolver",
      [](const std::string& type, std::optional<int> id,
         const std::string& rpc_layer, const std::string& environment) {
        return resolvers::TFConfigClusterResolver(
            resolver_options(type, id, rpc_layer, environment),
            site_of_caller());
      },
      "type"_a, "id"_a.none(), "rpc_layer"_a, "environment"_a);
  m.def("simple_resolver",
        [](const JobMap& jobs, const std::string& type, int id,
           const std::string& rpc_layer, const std::string& environment) {
          const Site site = site_of_caller();
          return resolvers::SimpleClusterResolver(
              ClusterSpec::sparse(jobs, site),
              resolver_options(type, id, rpc_layer, environment), site);
        });
  m.def("slurm_resolver",
        [](std::vector<std::pair<std::string, int>> jobs, int port_base,
           std::vector<int> tasks_per_node, const std::string& rpc_layer) {
          resolvers::SlurmOptions o;
          o.jobs = std::move(jobs);
          o.port_base = port_base;
          o.tasks_per_node = std::move(tasks_per_node);
          o.rpc_layer = rpc_layer;
          return resolvers::SlurmClusterResolver(o, site_of_caller());
        });
}

}  // namespace berth::python
