// berth worker: serves the devices of this machine to a cluster.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "berth/cluster.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "berth/remote.h"
#include "cli/commands.h"

namespace berth::cli {

namespace {

struct WorkerArguments {
  std::string devices;
  double join_timeout_seconds = 600;
};

distribute::ClusterResolver resolver_of_worker() {
  try {
    auto resolver = distribute::cluster_resolver::from_environment();
    if (!resolver.alone()) return resolver;
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(std::string("worker: ") + e.what());
  }
  throw UsageError(
      "worker: nothing says which cluster this is; expected TF_CONFIG, or a "
      "launcher: berth launch --workers 2 -- berth worker");
}

void run_worker(const WorkerArguments& o) {
  const auto resolver = resolver_of_worker();
  if (!o.devices.empty()) {
    try {
      config::set_device_list(o.devices);
    } catch (const errors::InvalidArgument& e) {
      throw UsageError(std::string("worker: ") + e.what());
    }
  }
  for (const auto& d : config::list_logical_devices()) {
    std::fputs(
        fmt::format("{}: {}, {}\n", resolver.task.str(), d.name, d.description)
            .c_str(),
        stderr);
  }
  config::serve_devices(resolver,
                        {.join_timeout_seconds = o.join_timeout_seconds});
}

}  // namespace

void add_worker(CLI::App& program) {
  auto o = std::make_shared<WorkerArguments>();
  CLI::App* worker = program.add_subcommand(
      "worker",
      "Serves the devices of this machine to a cluster, until its "
      "coordinator is done");
  worker->add_option("--devices", o->devices,
                     "serve these, for example CPUx2,GPUx2");
  worker->add_option("--join-timeout", o->join_timeout_seconds,
                     "seconds until all tasks are there");
  worker->callback([o] { run_worker(*o); });
}

}  // namespace berth::cli
