// Parameter servers (tf.distribute.ParameterServerStrategy and its
// ClusterCoordinator). Structures of what scheduled functions take and return
// are Python's (berth/_servers.py).

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <thread>

#include "classes.h"
#include "convert.h"
#include "distribute/parameter_server/coordinator.h"
#include "errors.h"
#include "held.h"

BERTH_PYTHON_HANDLE(berth::distribute::ParameterServerStrategy, false)
BERTH_PYTHON_HANDLE(berth::distribute::PerWorker, false)

namespace berth::python {

namespace {

using namespace distribute;  // NOLINT

// A scheduled function's result, with the structure that Python gave it.
class Remote : public RemoteResult {
 public:
  using RemoteResult::RemoteResult;
  nb::object tensors() const {
    const Site site = site_of_caller();
    return to_python(freely([&] { return wait(site); }));
  }
  nb::object form() const { return **std::any_cast<Held>(&structure()); }
};

}  // namespace

}  // namespace berth::python

BERTH_PYTHON_HANDLE(berth::python::Remote, false)

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

// fn(replicas, pipelines, number of the pipeline) -> Dataset, on any thread.
DatasetFn dataset_fn_of(nb::object fn) {
  return [fn = held(std::move(fn))](const InputContext& c) {
    const Gil gil;
    try {
      return nb::cast<data::Dataset>((*fn)(
          c.num_replicas_in_sync, c.num_input_pipelines, c.input_pipeline_id));
    } catch (nb::python_error& e) {
      raise_in_engine(e, errors::Code::kUnknown);
    }
  };
}

// fn(shape, dtype) -> number of shards by axis.
Partitioner own_partitioner(nb::object fn) {
  return Partitioner(
      [fn = held(std::move(fn))](const Shape& shape, DType dtype, int axis) {
        const Gil gil;
        const auto shards = From<std::vector<int64_t>>::get(
            (*fn)(to_python(shape), to_python(dtype)).ptr(), {});
        for (size_t i = 0; i < shards.size(); ++i) {
          if (static_cast<int>(i) == axis || shards[i] == 1) continue;
          throw errors::InvalidArgument(fmt::format(
              "variable_partitioner: {} shards along axis {} of shape {}; "
              "expected 1, since variables are split along axis {}",
              shards[i], i, shape.str(), axis));
        }
        return shards.empty() ? 1 : shards.at(static_cast<size_t>(axis));
      });
}

void add_partitioners(nb::module_& m) {
  nb::class_<Partitioner>(m, "Partitioner")
      .def("__call__", [](const Partitioner& p, nb::handle shape,
                          nb::handle dtype, int axis) {
        return p(From<Shape>::get(shape.ptr(), {}),
                 From<DType>::get(dtype.ptr(), {}), axis, site_of_caller());
      });
  m.def("fixed_shards_partitioner", [](int64_t num_shards) {
    return partitioners::FixedShardsPartitioner(num_shards, site_of_caller());
  });
  m.def("min_size_partitioner", [](int64_t bytes, int64_t most, int64_t text) {
    return partitioners::MinSizePartitioner({bytes, most, text},
                                            site_of_caller());
  });
  m.def(
      "max_size_partitioner",
      [](int64_t bytes, std::optional<int64_t> most, int64_t text) {
        return partitioners::MaxSizePartitioner({bytes, most, text},
                                                site_of_caller());
      },
      "bytes"_a, "most"_a.none(), "text"_a);
}

ParameterServerOptions server_options(const nb::dict& d) {
  ParameterServerOptions o;
  const nb::object partitioner = d["variable_partitioner"];
  if (nb::isinstance<Partitioner>(partitioner)) {
    o.variable_partitioner = nb::cast<const Partitioner&>(partitioner);
  } else if (!partitioner.is_none()) {
    o.variable_partitioner = own_partitioner(partitioner);
  }
  o.max_staleness = From<std::optional<int64_t>>::get(
      nb::object(d["max_staleness"]).ptr(), {});
  o.worker_timeout_seconds = nb::cast<double>(d["worker_timeout_seconds"]);
  o.join_timeout_seconds = nb::cast<double>(d["join_timeout_seconds"]);
  o.closure_timeout_seconds = nb::cast<double>(d["closure_timeout_seconds"]);
  o.queue_length = nb::cast<int64_t>(d["queue_length"]);
  return o;
}

// The leaves are tensors, or pairs of what each worker has and how many
// elements of it are taken. fn(tensors) -> (tensors, structure), in a trace.
// `identity`: functions with the same one and the same `fixed` share traces.
Remote* schedule(const ParameterServerStrategy& s, nb::object identity,
                 nb::list leaves, const std::string& fixed, nb::object fn) {
  ClosureCall call;
  for (nb::handle leaf : leaves) {
    if (!nb::isinstance<nb::tuple>(leaf)) {
      call.leaves.push_back(tensor_of(leaf.ptr()));
      call.from.emplace_back();
      continue;
    }
    const auto& source = nb::cast<const PerWorker&>(leaf[0]);
    const int n = num_components(source) * nb::cast<int>(leaf[1]);
    for (int i = 0; i < n; ++i) {
      call.leaves.emplace_back();
      call.from.push_back({source.state(), i});
    }
  }
  call.fixed = fixed;
  const Held traced = held(std::move(fn));
  call.keep = traced;
  if (!identity.is_none()) {
    call.identity = identity.ptr();
    call.keep = held(std::move(identity));
  }
  call.trace = [traced](const Tensors& in, std::any* structure) {
    const Gil gil;
    const nb::tuple got = nb::cast<nb::tuple>((*traced)(to_python(in)));
    *structure = held(nb::borrow(got[1]));
    return tensors_in(got[0]);
  };
  const Site site = site_of_caller();
  return freely([&] { return new Remote(s.servers()->schedule(call, site)); });
}

// Ends the other tasks; no longer than a while, since functions that run may
// wait for Python.
void end_tasks(const ParameterServerStrategy& s) {
  if (is_left()) return;
  constexpr auto kMost = std::chrono::seconds(10);
  auto ended = std::make_shared<std::promise<void>>();
  const auto wait = ended->get_future();
  const Free free;
  std::thread([servers = s.servers(), ended]() mutable {
    servers->end();
    servers.reset();
    ended->set_value();
  }).detach();
  wait.wait_for(kMost);
}

// Serves on a thread of its own, for a cluster within one process.
void serve_beside(const ClusterResolver& resolver, double join_timeout) {
  ParameterServerOptions o;
  o.join_timeout_seconds = join_timeout;
  std::thread([resolver, o, site = site_of_caller()] {
    try {
      serve(resolver, o, site);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: %s\n", resolver.task.str().c_str(), e.what());
    }
  }).detach();
}

void add_per_worker(nb::module_& m) {
  nb::class_<Remote>(m, "RemoteResult")
      .def("done", [](const Remote& r) { return r.done(); })
      .def("tensors", &Remote::tensors)
      .def("form", &Remote::form);
  nb::class_<PerWorker>(m, "PerWorker")
      .def("make_iterator",
           [](const PerWorker& p) -> PerWorker {
             return PerWorkerDataset(p.state()).make_iterator();
           })
      .def("specs", [](const PerWorker& p) {
        nb::list all;
        for (const TensorSpec& s : p.state()->specs) {
          all.append(nb::make_tuple(to_python(s.shape), to_python(s.dtype)));
        }
        return all;
      });
}

void add_datasets_of_workers(nb::class_<ParameterServerStrategy, Strategy>& c) {
  c.def("dataset_named",
        [](const ParameterServerStrategy& s,
           const std::string& name) -> PerWorker {
          const Site site = site_of_caller();
          return freely([&] { return s.servers()->make_dataset(name, site); });
        })
      .def(
          "dataset_of",
          [](const ParameterServerStrategy& s,
             std::vector<data::Dataset> by_worker) -> PerWorker {
            return freely([&] { return s.servers()->make_dataset(by_worker); });
          })
      .def("resource",
           [](const ParameterServerStrategy& s, nb::object fn) -> PerWorker {
             const Site site = site_of_caller();
             const Held made = held(std::move(fn));
             return freely([&] {
               return s.servers()->make_resource(
                   [made] {
                     const Gil gil;
                     return tensors_in((*made)());
                   },
                   site);
             });
           });
}

nb::object statistics_of(const ParameterServerStrategy& s) {
  const CoordinatorStatistics n = s.servers()->statistics();
  nb::dict d;
  d["scheduled"] = n.scheduled;
  d["done"] = n.done;
  d["failed"] = n.failed;
  d["cancelled"] = n.cancelled;
  d["run_again"] = n.run_again;
  d["max_staleness"] = n.max_staleness;
  return d;
}

}  // namespace

void add_parameter_server(nb::module_& m) {
  add_partitioners(m);
  add_per_worker(m);
  nb::class_<ParameterServerStrategy, Strategy> c(m, "ParameterServerStrategy");
  c.def_prop_ro("num_workers", &ParameterServerStrategy::num_workers)
      .def_prop_ro("num_parameter_servers",
                   &ParameterServerStrategy::num_parameter_servers)
      .def("servers_of",
           [](const ParameterServerStrategy& s, nb::handle variable) {
             const Variable v = From<Variable>::get(variable.ptr(), {});
             return freely([&] { return s.servers_of(v); });
           })
      .def("schedule", &schedule, "identity"_a.none(), "leaves"_a, "fixed"_a,
           "fn"_a, nb::rv_policy::take_ownership)
      .def("join",
           [](const ParameterServerStrategy& s) {
             const Site site = site_of_caller();
             const Free free;
             s.servers()->join(site);
           })
      .def("done",
           [](const ParameterServerStrategy& s) {
             const Site site = site_of_caller();
             return freely([&] { return s.servers()->done(site); });
           })
      .def("statistics", &statistics_of)
      .def("end", &end_tasks);
  add_datasets_of_workers(c);
  // On the chief alone: others serve().
  m.def("parameter_server_strategy", [](const ClusterResolver& resolver,
                                        nb::dict options) {
    const ParameterServerOptions o = server_options(options);
    const Site site = site_of_caller();
    return freely([&] { return ParameterServerStrategy(resolver, o, site); });
  });
  m.def("serve", [](const ClusterResolver& resolver, double join_timeout) {
    ParameterServerOptions o;
    o.join_timeout_seconds = join_timeout;
    const Site site = site_of_caller();
    const Free free;
    serve(resolver, o, site);
  });
  m.def("serve_beside", &serve_beside);
  m.def("register_dataset", [](const std::string& name, nb::object fn) {
    register_dataset(name, dataset_fn_of(std::move(fn)));
  });
}

}  // namespace berth::python
