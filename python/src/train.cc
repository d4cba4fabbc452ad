// Checkpoints (berth/train.h). Which objects they hold is Python's affair
// (berth/train.py): here come handles, and functions that name variables.

#include "berth/train.h"

#include "classes.h"
#include "convert.h"
#include "held.h"

BERTH_PYTHON_HANDLE(berth::train::Checkpoint, true)
BERTH_PYTHON_HANDLE(berth::train::CheckpointManager, true)

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using train::Checkpoint;
using train::CheckpointManager;
using train::LoadStatus;

// Variables of an object of Python's, by the names of its attributes: what a
// function returns, which takes the name and value of one that is yet to be
// made, and says whether it will be.
class NamedVariables final : public train::Tracked {
 public:
  explicit NamedVariables(nb::object ask) : ask_(held(std::move(ask))) {}
  std::string kind() const override { return "Object"; }
  std::vector<train::NamedVariable> variables() const override {
    const Gil gil;
    std::vector<train::NamedVariable> all;
    for (nb::handle p : (*ask_)()) {
      all.push_back({nb::cast<std::string>(p[0]),
                     From<Variable>::get(nb::object(p[1]).ptr(), {}),
                     {}});
    }
    return all;
  }
  bool has_parts() const override { return true; }
  bool restore_later(const std::string& name, const Tensor& value) override {
    const Gil gil;
    return nb::cast<bool>((*ask_)(name, to_python(value)));
  }

 private:
  decltype(held(nb::object())) ask_;
};

train::Trackable trackable(nb::handle o) {
  if (nb::isinstance<Variable>(o)) return nb::cast<const Variable&>(o);
  if (nb::isinstance<keras::Model>(o)) return nb::cast<const keras::Model&>(o);
  if (nb::isinstance<keras::Layer>(o)) return nb::cast<const keras::Layer&>(o);
  if (nb::isinstance<keras::Optimizer>(o)) {
    return nb::cast<const keras::Optimizer&>(o);
  }
  if (nb::isinstance<keras::Metric>(o)) {
    return nb::cast<const keras::Metric&>(o);
  }
  if (data::Iterator* it = iterator_of(o)) return *it;
  return std::shared_ptr<train::Tracked>(
      std::make_shared<NamedVariables>(nb::borrow(o)));
}

// [(name, object), ...]
train::Objects objects_of(nb::list pairs) {
  train::Objects objects;
  for (nb::handle p : pairs) {
    objects.emplace_back(nb::cast<std::string>(p[0]),
                         trackable(nb::object(p[1])));
  }
  return objects;
}

std::string save(Checkpoint& c, const std::string& prefix, bool counted,
                 bool async) {
  const Site site = site_of_caller();
  const Free free;
  const train::CheckpointOptions options{.enable_async = async};
  return counted ? c.save(prefix, options, site)
                 : c.write(prefix, options, site);
}

void add_status(nb::module_& m) {
  nb::class_<LoadStatus>(m, "LoadStatus")
      .def_prop_ro("restored", [](LoadStatus& s) { return s.restored(); })
      .def_prop_ro("deferred", [](LoadStatus& s) { return s.deferred(); })
      .def_prop_ro("missing", [](LoadStatus& s) { return s.missing(); })
      .def_prop_ro("unused", [](LoadStatus& s) { return s.unused(); })
      .def(
          "assert_consumed",
          [](LoadStatus& s) { return s.assert_consumed(site_of_caller()); },
          "Raises an error unless all values went to variables, and all "
          "variables got one.")
      .def(
          "assert_existing_objects_matched",
          [](LoadStatus& s) {
            return s.assert_existing_objects_matched(site_of_caller());
          },
          "Raises an error unless all variables got a value.")
      .def(
          "expect_partial", [](LoadStatus& s) { return s.expect_partial(); },
          "Says that values without a variable are no mistake.");
}

CheckpointManager* make_manager(const Checkpoint& c, const std::string& folder,
                                nb::dict d) {
  train::CheckpointManagerOptions o;
  o.max_to_keep = nb::cast<int>(d["max_to_keep"]);
  o.keep_checkpoint_every_n_hours = nb::cast<double>(d["every_n_hours"]);
  o.checkpoint_name = nb::cast<std::string>(d["checkpoint_name"]);
  if (!d["step_counter"].is_none()) {
    o.step_counter =
        From<Variable>::get(nb::object(d["step_counter"]).ptr(), {});
  }
  o.checkpoint_interval = nb::cast<int64_t>(d["checkpoint_interval"]);
  if (!d["init_fn"].is_none()) {
    o.init_fn = [fn = held(nb::borrow(d["init_fn"]))] {
      const Gil gil;
      (*fn)();
    };
  }
  return new CheckpointManager(c, folder, std::move(o), site_of_caller());
}

void add_manager(nb::module_& m) {
  nb::class_<CheckpointManager>(m, "CheckpointManager")
      .def_static("make", &make_manager, nb::rv_policy::take_ownership)
      .def(
          "save",
          [](CheckpointManager& c, std::optional<int64_t> number, bool check) {
            const Site site = site_of_caller();
            const Free free;
            return c.save(number, check, site);
          },
          "number"_a.none(), "check"_a)
      .def("restore_or_initialize",
           [](CheckpointManager& c) {
             const Site site = site_of_caller();
             const Free free;
             return c.restore_or_initialize(site);
           })
      .def("sync",
           [](CheckpointManager& c) {
             const Free free;
             c.sync();
           })
      .def("checkpoints", &CheckpointManager::checkpoints)
      .def("latest_checkpoint", &CheckpointManager::latest_checkpoint);
}

}  // namespace

void add_train(nb::module_& m) {
  add_status(m);
  nb::class_<Checkpoint>(m, "Checkpoint")
      .def_static("make",
                  [](nb::list pairs) {
                    return Checkpoint(objects_of(pairs), site_of_caller());
                  })
      .def("set_objects",
           [](Checkpoint& c, nb::list pairs) {
             c.set_objects(objects_of(pairs), site_of_caller());
           })
      .def("save", &save)
      .def("restore",
           [](Checkpoint& c, const std::string& path, bool counted) {
             const Site site = site_of_caller();
             const Free free;
             return counted ? c.restore(path, site) : c.read(path, site);
           })
      .def("sync",
           [](Checkpoint& c) {
             const Free free;
             c.sync();
           })
      .def("save_counter", &Checkpoint::save_counter);
  add_manager(m);
  m.def("latest_checkpoint", &train::latest_checkpoint);
  m.def("list_variables", [](const std::string& path) {
    nb::list all;
    for (const TensorSpec& s : train::list_variables(path, site_of_caller())) {
      all.append(nb::make_tuple(s.name, to_python(s.shape)));
    }
    return all;
  });
  m.def("load_variable", [](const std::string& path, const std::string& name) {
    return train::load_variable(path, name, site_of_caller());
  });
}

}  // namespace berth::python
