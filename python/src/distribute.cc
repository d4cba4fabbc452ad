// Strategies (tf.distribute). Structures of what replicas take and return are
// Python's affair (berth/distribute.py).

#include "berth/auto_strategy.h"
#include "berth/model_parallel.h"
#include "berth/pipeline.h"
#include "classes.h"
#include "convert.h"
#include "distribute/automatic/choose_plan.h"
#include "distribute/pipeline/pipeline.h"
#include "distribute/prediction/planned_step.h"
#include "distribute/strategy/rebalance.h"
#include "elements.h"
#include "errors.h"
#include "fits_report.h"
#include "held.h"
#include "keras/models/layer_state.h"
#include "op/device_scope.h"
#include "op/replica_scope.h"
#include "op/with_room.h"
#include "tensor/variable_state.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using namespace distribute;  // NOLINT

// A scope from __enter__ to __exit__.
class StrategyScope {
 public:
  explicit StrategyScope(Strategy s) : strategy_(std::move(s)) {}
  void enter() {
    guard_ =
        std::make_unique<StrategyGuard>(strategy_.core(), site_of_caller());
  }
  void exit() { guard_.reset(); }

 private:
  Strategy strategy_;
  std::unique_ptr<StrategyGuard> guard_;
};

// Inside, writes of variables in a replica are equal in all, and not
// aggregated.
struct EqualWrites {
  std::optional<Unaggregated> scope;
};

Mesh mesh_of(const std::vector<std::string>& names,
             const std::vector<int>& sizes, std::vector<std::string> devices) {
  std::vector<MeshAxis> axes;
  for (size_t i = 0; i < names.size(); ++i) {
    axes.push_back({names[i], sizes.at(i)});
  }
  return Mesh(std::move(axes), std::move(devices), site_of_caller());
}

LayoutMap map_of(Mesh mesh, const std::vector<std::string>& keys,
                 const std::vector<AxisNames>& layouts) {
  LayoutMap map(std::move(mesh));
  for (size_t i = 0; i < keys.size(); ++i) map[keys[i]] = layouts.at(i);
  return map;
}

// args: lists of tensors, one per replica. fn(replica, tensors) -> (tensors,
// structure). Returns (lists of tensors by replica, structure).
// split: the argument whose first axis counts examples; -1: none.
nb::object run(const Strategy& s, nb::list args, const std::string& fixed,
               nb::object fn, int split) {
  ReplicaCall call;
  call.split = split;
  for (nb::handle a : args) call.args.push_back(tensors_in(a));
  call.fixed = fixed;
  std::atomic<int> calls = 0;
  call.num_calls = &calls;
  const Held held_fn = held(std::move(fn));
  call.fn = [held_fn](int replica, const Tensors& in, std::any* structure) {
    const Gil gil;
    nb::tuple got = nb::cast<nb::tuple>((*held_fn)(replica, to_python(in)));
    *structure = held(nb::borrow(got[1]));
    return tensors_in(got[0]);
  };
  std::shared_ptr<const std::any> structure;
  std::vector<Tensors> out;
  {
    const Free free;
    out = run_replicas(s.core(), call, &structure);
  }
  nb::list all;
  for (const Tensors& t : out) all.append(to_python(t));
  return nb::make_tuple(all, **std::any_cast<Held>(structure.get()));
}

// step_of(batch) -> (list of (shape, dtype), fn(tensors) -> tensors, variables
// that the step should update).
std::function<StepToPlan(int64_t)> steps_of(
    const std::shared_ptr<StrategyCore>& core, const std::string& name,
    nb::object step_of) {
  return [core, name, made = held(std::move(step_of))](int64_t batch) {
    const Gil gil;
    const nb::tuple got = nb::cast<nb::tuple>((*made)(batch));
    StepToPlan step{.name = name};
    for (nb::handle spec : nb::cast<nb::list>(got[0])) {
      step.args.push_back({From<Shape>::get(spec[0].ptr(), {}),
                           From<DType>::get(spec[1].ptr(), {})});
    }
    step.fn = [fn = held(nb::borrow(got[1])), core](const Tensors& in) {
      const Gil gil_of_trace;
      const keras::GlobalStep whole(core.get());
      return tensors_in((*fn)(to_python(in)));
    };
    for (nb::handle v : nb::cast<nb::list>(got[2])) {
      step.trainable.push_back(From<Variable>::get(v.ptr(), {}));
    }
    return step;
  };
}

StrategyPlan plan_of(const Strategy& s, const std::string& name,
                     nb::object step_of, int64_t batch_size) {
  const auto step = steps_of(s.core(), name, std::move(step_of));
  const StepToPlan first = step(batch_size);
  const Free free;
  choose_plan(*s.core(), first);
  return plan_batch(s.core(), first, step);
}

// Lets an AutoStrategy choose, unless it has.
void choose_for(const Strategy& s, const std::string& name, nb::object step_of,
                int64_t batch_size) {
  const StepToPlan step =
      steps_of(s.core(), name, std::move(step_of))(batch_size);
  const Free free;
  choose_plan(*s.core(), step);
}

// What optimizers make inside is for other variables: where `like` is, or
// where the strategy puts it.
class SlotScope {
 public:
  explicit SlotScope(std::optional<Variable> like) : like_(std::move(like)) {}
  SlotScope(const SlotScope&) = delete;
  SlotScope& operator=(const SlotScope&) = delete;

  void enter() {
    if (like_) {
      const VariableState& v = variable_state(like_->handle());
      on_.emplace(v.device, v.asked ? ScopeKind::kUser : ScopeKind::kEngine);
      return;
    }
    push_scope(&scope_, {}, {});
    scope_.kind = ScopeKind::kEngine;
    scope_.device = nullptr;  // the strategy's choice
  }
  void leave() {
    if (like_) return on_.reset();
    pop_scope(&scope_);
  }

 private:
  const std::optional<Variable> like_;
  std::optional<OnDevice> on_;
  DeviceScope scope_;
};

// Plans it for its memory, with a strategy or without.
StepMemory fits_of(const Strategy* s, const std::string& name,
                   nb::object step_of, int64_t batch, int64_t memory_bytes) {
  const auto core = s == nullptr ? nullptr : s->core();
  const auto step = steps_of(core, name, std::move(step_of));
  const Free free;
  return fits_step(core, step, batch, memory_bytes);
}

StrategyOptions options_of(std::vector<std::string> devices, nb::handle shares,
                           int slices) {
  StrategyOptions o;
  o.devices = std::move(devices);
  o.slices = slices;
  if (nb::isinstance<nb::str>(shares)) {
    o.shares = Auto;
  } else if (!shares.is_none()) {
    o.shares = From<std::vector<double>>::get(shares.ptr(), {});
  }
  return o;
}

Sharding sharding_of(const std::string& name) {
  if (name == "none") return Sharding::kNone;
  if (name == "optimizer") return Sharding::kOptimizer;
  if (name == "gradients") return Sharding::kGradients;
  if (name == "parameters") return Sharding::kParameters;
  throw errors::InvalidArgument(
      "MirroredStrategy: sharding '" + name +
      "'; expected \"none\", \"optimizer\", \"gradients\" or "
      "\"parameters\"");
}

ReduceOp op_of(const std::string& name) {
  if (name == "sum") return ReduceOp::kSum;
  if (name == "mean") return ReduceOp::kMean;
  throw errors::InvalidArgument("reduce: '" + name +
                                "' is neither \"sum\" nor \"mean\"");
}

ReplicaContext context() {
  const auto context = get_replica_context();
  if (!context) {
    throw errors::FailedPrecondition(
        "this belongs in a function that strategy.run() calls");
  }
  return *context;
}

class BatchPass : public Elements {
 public:
  explicit BatchPass(const DistributedDataset& d)
      : iterator_(d.make_iterator()) {}

 private:
  bool take_next(Element* element) override {
    const auto batch = iterator_->next();
    if (!batch) return false;
    *element = {};
    for (const PerReplica& p : *batch) {
      element->parts.push_back(p.size());
      for (size_t r = 0; r < p.size(); ++r) element->leaves.push_back(p[r]);
    }
    return true;
  }

  Handle<DistributedDataset::Iterator> iterator_;
};

void add_strategy(nb::module_& m) {
  nb::class_<StrategyScope>(m, "StrategyScope")
      .def("enter", &StrategyScope::enter)
      .def("exit", &StrategyScope::exit);
  nb::class_<BatchPass, Elements>(m, "BatchPass");
  nb::class_<DistributedDataset>(m, "DistributedDataset")
      .def(
          "pass_", [](const DistributedDataset& d) { return new BatchPass(d); },
          nb::rv_policy::take_ownership)
      .def("cardinality", &DistributedDataset::cardinality);
  nb::class_<Strategy>(m, "Strategy")
      .def(
          "scope", [](const Strategy& s) { return new StrategyScope(s); },
          nb::rv_policy::take_ownership)
      .def_prop_ro("name", [](const Strategy& s) { return s.name(); })
      .def_prop_ro("num_replicas_in_sync",
                   [](const Strategy& s) { return s.num_replicas_in_sync(); })
      .def_prop_ro("replicas_here",
                   [](const Strategy& s) {
                     return distribute::internal::replicas_here(*s.core());
                   })
      .def("devices", [](const Strategy& s) { return s.devices(); })
      .def("run", &run)
      .def(
          "reduce",
          [](const Strategy& s, const std::string& op, nb::list values,
             std::optional<int64_t> axis) {
            const PerReplica p(tensors_in(values));
            const ReduceOp o = op_of(op);
            const Site site = site_of_caller();
            return freely([&] { return s.reduce(o, p, axis, site); });
          },
          "op"_a, "values"_a, "axis"_a.none())
      .def("gather",
           [](const Strategy& s, nb::list values, int64_t axis) {
             const PerReplica p(tensors_in(values));
             const Site site = site_of_caller();
             return freely([&] { return s.gather(p, axis, site); });
           })
      .def("distribute",
           [](const Strategy& s, const data::Dataset& d) {
             return s.experimental_distribute_dataset(d, site_of_caller());
           })
      .def("distribute_from_function",
           [](const Strategy& s, nb::object fn) {
             const Site site = site_of_caller();
             const Held made = held(std::move(fn));
             return freely([&] {
               return s.distribute_datasets_from_function(
                   [&](const InputContext& c) {
                     const Gil gil;
                     return nb::cast<data::Dataset>(
                         (*made)(c.num_replicas_in_sync, c.num_input_pipelines,
                                 c.input_pipeline_id));
                   },
                   site);
             });
           })
      .def(
          "plan",
          [](const Strategy& s, const keras::Model& model, int64_t batch_size) {
            return s.plan(model, batch_size);
          },
          nb::call_guard<Free>())
      .def("plan_step", &plan_of)
      .def("choose_step", &choose_for)
      .def("start_shares", [](const Strategy& s) { start_shares(*s.core()); })
      .def("shares", [](const Strategy& s) { return s.core()->shares(); });
}

// strategy.elastic(); `told`: None, or a function. A task that was told to end
// leaves Python by SystemExit, so that what it has to do at its end is done.
void run_elastic(const MultiWorkerMirroredStrategy& s, nb::object train,
                 int min, int max, double timeout_seconds, int most_restarts,
                 int steps_per_copy, nb::object told, double grace_seconds,
                 std::vector<int> signals, const std::string& notice_file) {
  const Site site = site_of_caller();
  ElasticOptions o{min, max, timeout_seconds, most_restarts, steps_per_copy};
  TerminationConfig& config = o.termination_config;
  config.grace_period_seconds = grace_seconds;
  config.signals = std::move(signals);
  config.notice_file = notice_file;
  if (!told.is_none()) {
    config.termination_watcher_fn = [told = held(std::move(told))] {
      const Gil gil;
      try {
        return nb::cast<bool>(nb::bool_((*told)()));
      } catch (nb::python_error& e) {
        raise_in_engine(e, errors::Code::kUnknown);
      }
    };
  }
  config.exit_fn = [code = config.restart_code] {
    const Gil gil;
    PyErr_SetObject(PyExc_SystemExit, nb::int_(code).ptr());
    nb::raise_python_error();
  };
  const auto call = [train = held(std::move(train))] {
    const Gil gil;
    try {
      (*train)();
    } catch (nb::python_error& e) {
      raise_in_engine(e, errors::Code::kUnknown);
    }
  };
  const Free free;
  s.elastic(call, o, site);
}

void add_strategies(nb::module_& m) {
  m.def("with_room", [](const std::string& what, nb::callable make) {
    with_room(what, [&] {
      try {
        make();
      } catch (nb::python_error& e) {
        if (!is_error(e, errors::Code::kResourceExhausted)) throw;
        throw errors::ResourceExhausted(
            nb::cast<std::string>(nb::str(e.value())));
      }
    });
  });
  nb::class_<SlotScope>(m, "SlotScope")
      .def(nb::init<std::optional<Variable>>(), "like"_a.none() = nb::none())
      .def("enter", &SlotScope::enter)
      .def("leave", &SlotScope::leave);
  m.def(
      "mirrored_strategy",
      [](std::vector<std::string> devices, nb::handle shares, int slices,
         const std::string& sharding) -> Strategy {
        StrategyOptions o = options_of(std::move(devices), shares, slices);
        o.sharding = sharding_of(sharding);
        return MirroredStrategy(std::move(o), site_of_caller());
      },
      "devices"_a, "shares"_a.none(), "slices"_a, "sharding"_a);
  m.def("one_device_strategy", [](const std::string& device) -> Strategy {
    return OneDeviceStrategy(device, site_of_caller());
  });
  m.def(
      "central_storage_strategy",
      [](std::vector<std::string> devices) -> Strategy {
        return CentralStorageStrategy(
            options_of(std::move(devices), nb::none(), 0), site_of_caller());
      },
      "devices"_a);
  m.def(
      "pipeline_strategy",
      [](std::vector<std::string> devices, int micro_batches,
         const std::string& schedule, std::vector<std::string> stages,
         std::string instructions, int slices) -> Strategy {
        return PipelineStrategy(
            std::move(devices),
            {micro_batches, schedule_named(schedule), std::move(stages),
             std::move(instructions), slices},
            site_of_caller());
      },
      "devices"_a, "micro_batches"_a, "schedule"_a, "stages"_a,
      "instructions"_a, "slices"_a);
  m.def("check_mesh",
        [](const std::vector<std::string>& names, const std::vector<int>& sizes,
           std::vector<std::string> devices) {
          mesh_of(names, sizes, std::move(devices));
        });
  m.def(
      "model_parallel_strategy",
      [](const std::vector<std::string>& names, const std::vector<int>& sizes,
         std::vector<std::string> devices, const std::vector<std::string>& keys,
         const std::vector<AxisNames>& layouts,
         const std::string& batch_dim_name,
         std::vector<double> shares) -> Strategy {
        return ModelParallel(
            map_of(mesh_of(names, sizes, std::move(devices)), keys, layouts),
            {batch_dim_name, std::move(shares)}, site_of_caller());
      });
  m.def("lay_out",
        [](const Strategy& s, const Variable& v, const AxisNames& layout) {
          s.core()->lay_out(v.handle(), layout);
        });
  m.def("split_axis", [](const Variable& v) {
    return variable_state(v.handle()).split_axis;
  });
  m.def(
      "pipeline_of_layers",
      [](const std::vector<std::string>& names, const std::vector<int>& sizes,
         std::vector<std::string> devices, const std::vector<std::string>& keys,
         const std::vector<AxisNames>& layouts,
         const std::string& stage_dim_name, int micro_batches,
         const std::string& schedule, std::vector<std::string> stages,
         std::string instructions, int slices) -> Strategy {
        return PipelineStrategy(
            map_of(mesh_of(names, sizes, std::move(devices)), keys, layouts),
            stage_dim_name,
            {micro_batches, schedule_named(schedule), std::move(stages),
             std::move(instructions), slices},
            site_of_caller());
      });
  m.def("auto_strategy",
        [](std::vector<std::string> devices, int64_t memory_bytes,
           int most_micro_batches, int64_t most_copies, bool replicas,
           bool sharding, bool divided_layers, bool pipelines) -> Strategy {
          return AutoStrategy(std::move(devices),
                              {memory_bytes, most_micro_batches, most_copies,
                               replicas, sharding, divided_layers, pipelines},
                              site_of_caller());
        });
  m.def("planned_strategy", [](const std::string& path) -> Strategy {
    return PlannedStrategy(path, site_of_caller());
  });
  // Text and JSON of a choice; None: nothing is chosen.
  m.def("chosen_plan", [](const Strategy& s) -> nb::object {
    const ParallelPlan* plan = s.core()->choice();
    if (plan == nullptr) return nb::none();
    return nb::make_tuple(plan->str(), plan->json());
  });
  m.def("save_plan", [](const std::string& json, const std::string& path) {
    ParallelPlan::parse(json).save(path, site_of_caller());
  });
  m.def("pipeline_instructions", [](const Strategy& s) {
    const Pipeline& p = *s.core()->pipeline();
    return str(p.actions(p.options().micro_batches));
  });
  nb::class_<MultiWorkerMirroredStrategy, Strategy>(
      m, "MultiWorkerMirroredStrategy")
      .def_prop_ro("is_chief", &MultiWorkerMirroredStrategy::is_chief)
      .def_prop_ro(
          "task_type",
          [](const MultiWorkerMirroredStrategy& s) { return s.task_type(); })
      .def_prop_ro("task_id", &MultiWorkerMirroredStrategy::task_id)
      .def("leave",
           [](const MultiWorkerMirroredStrategy& s) {
             const Free free;
             s.leave();
           })
      .def("elastic", &run_elastic, "train"_a, "min"_a, "max"_a,
           "timeout_seconds"_a, "most_restarts"_a, "steps_per_copy"_a,
           "told"_a.none(), "grace_seconds"_a, "signals"_a, "notice_file"_a);
  m.def("multi_worker_mirrored_strategy",
        [](const ClusterResolver& resolver, int64_t bytes_per_pack,
           double timeout_seconds, int slices, int min_tasks) {
          const Site site = site_of_caller();
          StrategyOptions o;
          o.communication = {bytes_per_pack, timeout_seconds};
          o.slices = slices;
          JoinOptions join;
          join.min_tasks = min_tasks;
          const Free free;
          return MultiWorkerMirroredStrategy(resolver, o, join, site);
        });
}

}  // namespace

void add_distribute(nb::module_& m) {
  add_strategy(m);
  add_strategies(m);
  m.def(
      "fits_step",
      [](const Strategy* s, const std::string& name, nb::object step_of,
         int64_t batch, int64_t memory_bytes) {
        const StepMemory m =
            fits_of(s, name, std::move(step_of), batch, memory_bytes);
        return fits_tuple(m, m.holders);
      },
      "strategy"_a.none(), "name"_a, "step_of"_a, "batch"_a, "memory_bytes"_a);
  m.def("replica_id", []() -> nb::object {
    const auto context = get_replica_context();
    if (!context) return nb::none();
    return nb::int_(context->replica_id_in_sync_group());
  });
  nb::class_<EqualWrites>(m, "EqualWrites")
      .def(nb::init<>())
      .def("enter", [](EqualWrites& w) { w.scope.emplace(); })
      .def("leave", [](EqualWrites& w) { w.scope.reset(); });
  // Examples of this replica over those of all; 1 outside of replicas.
  m.def("replica_share", [] {
    return t_state.replica == nullptr ? 1.0 : t_state.replica->share();
  });
  m.def("all_reduce", [](const std::string& op, nb::list values) {
    const ReduceOp o = op_of(op);
    const Tensors in = tensors_in(values);
    const Site site = site_of_caller();
    return to_python(freely([&] { return context().all_reduce(o, in, site); }));
  });
  m.def("all_gather", [](nb::handle value, int64_t axis) {
    const Tensor in = tensor_of(value.ptr());
    const Site site = site_of_caller();
    return freely([&] { return context().all_gather(in, axis, site); });
  });
  // fn(lists of tensors by replica) -> tensors.
  m.def("merge_call", [](nb::object fn, nb::list values) {
    const Tensors in = tensors_in(values);
    const Site site = site_of_caller();
    const Held held_fn = held(std::move(fn));
    const auto merged = [held_fn](const Strategy&,
                                  const std::vector<PerReplica>& all) {
      const Gil gil;
      nb::list lists;
      for (const PerReplica& p : all) lists.append(to_python(p.values()));
      return tensors_in((*held_fn)(lists));
    };
    return to_python(
        freely([&] { return context().merge_call(merged, in, site); }));
  });
  m.def("get_strategy", [] { return get_strategy(); });
  m.def("has_strategy", [] { return has_strategy(); });
}

}  // namespace berth::python
