// Traced functions, and control flow inside them. Structures of arguments and
// results are Python's affair (structure.py): here are leaves.

#include <fmt/format.h>

#include "base/clock.h"
#include "base/diagnostics.h"
#include "base/intern.h"
#include "classes.h"
#include "convert.h"
#include "distribute/strategy/fit_rewrite.h"
#include "elements.h"
#include "held.h"
#include "op/device_scope.h"
#include "op/init_scope.h"
#include "op/replica_scope.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

Tensors tensors_of(nb::handle list) {
  Tensors all;
  for (nb::handle t : list) all.push_back(tensor_of(t.ptr()));
  return all;
}

// A layer of the package Keras, while it is called: its path names ops. In a
// step of a pipeline the strategy chooses its device.
class NamedLayer {
 public:
  NamedLayer() = default;
  NamedLayer(const NamedLayer&) = delete;
  NamedLayer& operator=(const NamedLayer&) = delete;

  void enter(const std::string& name, bool in_pipeline) {
    outer_ = t_state.layer;
    t_state.layer =
        intern(outer_ && *outer_ ? fmt::format("{}/{}", outer_, name) : name);
    if (!in_pipeline || t_state.strategy == nullptr) return;
    const std::string device = t_state.strategy->device_of_layer(t_state.layer);
    if (device.empty()) return;
    push_scope(&scope_, DeviceName::parse(device), t_state.site);
    scope_.kind = ScopeKind::kLayer;
    scoped_ = true;
  }
  void leave() {
    if (scoped_) pop_scope(&scope_);
    t_state.layer = outer_;
  }

 private:
  const char* outer_ = nullptr;
  DeviceScope scope_;
  bool scoped_ = false;
};

// tf.init_scope() enters and leaves one.
struct Block {
  std::optional<InitScope> scope;
};

class PyFunction {
 public:
  // trace(leaves) -> (leaves of the result, its structure).
  PyFunction(nb::object trace, const std::string& name,
             std::vector<std::pair<Shape, DType>> signature,
             const std::string& placement, nb::handle contracts,
             const distribute::Strategy* strategy)
      : trace_(std::move(trace)),
        core_(options(name, signature, placement, contracts, strategy)) {}

  PyFunction(const PyFunction&) = delete;
  PyFunction& operator=(const PyFunction&) = delete;

  nb::object call(nb::list leaves, const std::string& fixed) {
    const Tensors in = tensors_of(leaves);
    Tensors out;
    std::shared_ptr<const std::any> structure;
    const Site site = site_of_caller();
    {
      const Free free;
      core_->call(in, fixed, {this, &PyFunction::trace}, &out, &structure,
                  site);
    }
    return nb::make_tuple(to_python(out),
                          **std::any_cast<Held>(structure.get()));
  }
  // Calls with elements of a pass as long as they are like `like`, `most` times
  // or for so many seconds: (calls, leaves of the last result, its structure,
  // whether the pass has ended, the element that differs or None).
  nb::object call_each(Elements& pass, nb::list like, const std::string& fixed,
                       int64_t most, double seconds) {
    const Tensors first = tensors_of(like);
    Tensors out;
    std::shared_ptr<const std::any> structure;
    Element element;
    int64_t calls = 0;
    bool ended = false, differs = false;
    const Site site = site_of_caller();
    const double end = host_clock_us() + seconds * 1e6;
    {
      const Free free;
      while (calls < most && host_clock_us() < end) {
        ended = !pass.take(&element);
        differs = !ended && !element.is_like(first);
        if (ended || differs) break;
        core_->call(element.leaves, fixed, {this, &PyFunction::trace}, &out,
                    &structure, site);
        ++calls;
      }
    }
    return nb::make_tuple(
        calls, to_python(out),
        calls > 0 ? nb::object(**std::any_cast<Held>(structure.get()))
                  : nb::none(),
        ended, differs ? Elements::object_of(element) : nb::none());
  }
  FunctionCore& core() { return *core_; }

  // What the collector sees: the function that is traced holds this object.
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Py_VISIT(nb::inst_ptr<PyFunction>(self)->trace_.ptr());
    return 0;
  }
  static int clear(PyObject* self) {
    nb::object trace = std::move(nb::inst_ptr<PyFunction>(self)->trace_);
    return 0;
  }

 private:
  static FunctionOptions options(
      const std::string& name,
      const std::vector<std::pair<Shape, DType>>& signature,
      const std::string& placement, nb::handle contracts,
      const distribute::Strategy* strategy) {
    FunctionOptions o;
    o.name = name;
    o.contract = contracts_of(contracts);
    for (const auto& [shape, dtype] : signature) {
      o.input_signature.push_back({shape, dtype});
    }
    if (!placement.empty()) o.placement = placement;
    if (strategy != nullptr) {
      o.rewrite = distribute::fit_rewrite(strategy->core(), {.agrees = true});
    }
    return o;
  }
  static Tensors trace(void* context, const Tensors& leaves, std::any* result) {
    auto& self = *static_cast<PyFunction*>(context);
    const Gil gil;
    nb::tuple got = nb::cast<nb::tuple>(self.trace_(to_python(leaves)));
    *result = held(nb::borrow(got[1]));
    return tensors_of(got[0]);
  }

  nb::object trace_;
  Handle<FunctionCore> core_;
};

berth::internal::TracedFn leaves_of(nb::object fn) {
  return [fn = held(std::move(fn))](const Tensors& args) {
    const Gil gil;
    return berth::internal::Leaves{tensors_of((*fn)(to_python(args))), {}};
  };
}

// fn(leaves) -> leaves of the result; `signature` has (shape, dtype) pairs.
ConcreteFunction trace_concrete(nb::object fn, const std::string& name,
                                nb::list signature) {
  std::vector<TensorSpec> specs;
  for (nb::handle s : signature) {
    specs.push_back(
        {From<Shape>::get(s[0].ptr(), {}), From<DType>::get(s[1].ptr(), {})});
  }
  const Site site = site_of_caller();
  const Held held_fn = held(std::move(fn));
  const Free free;
  return berth::internal::trace_concrete(
      {.name = name, .input_signature = specs},
      [&](const Tensors& leaves) {
        const Gil gil;
        return tensors_of((*held_fn)(to_python(leaves)));
      },
      specs, site);
}

void add_concrete_function(nb::module_& m) {
  const auto pairs = [](const std::vector<TensorSpec>& specs) {
    nb::list all;
    for (const TensorSpec& s : specs) {
      all.append(nb::make_tuple(to_python(s.shape), to_python(s.dtype)));
    }
    return all;
  };
  nb::class_<ConcreteFunction>(m, "ConcreteFunction")
      .def("call",
           [](const ConcreteFunction& f, nb::list leaves) {
             const Tensors in = tensors_of(leaves);
             const Site site = site_of_caller();
             Tensors out;
             {
               const Free free;
               out = f(in, site);
             }
             return to_python(out);
           })
      .def("name", [](const ConcreteFunction& f) { return f.name(); })
      .def(
          "inputs",
          [pairs](const ConcreteFunction& f) { return pairs(f.input_specs()); })
      .def("outputs",
           [pairs](const ConcreteFunction& f) {
             return pairs(f.output_specs());
           })
      .def("variables",
           [](const ConcreteFunction& f) { return to_python(f.variables()); })
      .def("text", [](const ConcreteFunction& f) { return f.text(); })
      .def("save", [](const ConcreteFunction& f, const std::string& path) {
        f.save(path, {}, site_of_caller());
      });
  m.def("trace_concrete", &trace_concrete);
  m.def("load_function", [](const std::string& path) {
    return load_function(path, site_of_caller());
  });
}

}  // namespace

void add_function(nb::module_& m) {
  add_concrete_function(m);
  static PyType_Slot slots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(&PyFunction::traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(&PyFunction::clear)},
      {0, nullptr}};
  nb::class_<PyFunction>(m, "Function", nb::type_slots(slots))
      .def(
          "__init__",
          [](PyFunction* self, nb::object trace, const std::string& name,
             nb::list signature, const std::string& placement,
             nb::list contracts, const distribute::Strategy* strategy) {
            std::vector<std::pair<Shape, DType>> specs;
            for (nb::handle s : signature) {
              specs.emplace_back(From<Shape>::get(s[0].ptr(), {}),
                                 From<DType>::get(s[1].ptr(), {}));
            }
            new (self) PyFunction(std::move(trace), name, specs, placement,
                                  contracts, strategy);
          },
          "trace"_a, "name"_a, "signature"_a, "placement"_a, "contracts"_a,
          "strategy"_a.none() = nb::none())
      .def("call", &PyFunction::call)
      .def("call_each", &PyFunction::call_each)
      .def("num_traces", [](PyFunction& f) { return f.core().num_traces(); })
      .def("text",
           [](PyFunction& f, const std::string& stage) {
             return f.core().text(stage);
           })
      .def("placement", [](PyFunction& f) { return f.core().placement(); })
      .def("explain", [](PyFunction& f, const std::string& op) {
        return f.core().explain(op);
      });
  m.def("traces_cond", [](nb::handle pred) {
    return berth::internal::traces_cond(tensor_of(pred.ptr()));
  });
  m.def("lint_untraced", [](const std::string& name, const std::string& why) {
    report({"untraced", debugging::Severity::kLint,
            "function \"" + name +
                "\" runs op by op, for it cannot be traced: " + why,
            site_of_caller()});
  });
  // Whether a trace is on that does not know the value.
  m.def("is_open", [](nb::handle value) {
    return known(tensor_of(value.ptr())).is_symbolic();
  });
  m.def("traces_loop", [] { return berth::internal::traces_loop(); });
  nb::class_<NamedLayer>(m, "NamedLayer")
      .def(nb::init<>())
      .def("enter", &NamedLayer::enter)
      .def("leave", &NamedLayer::leave);
  nb::class_<Block>(m, "InitScope")
      .def(nb::init<>())
      .def("enter", [](Block& block) { block.scope.emplace(); })
      .def("leave", [](Block& block) { block.scope.reset(); });
  m.def("trace_cond", [](nb::handle pred, nb::object a, nb::object b) {
    const Tensor p = tensor_of(pred.ptr());
    const auto one = leaves_of(std::move(a)), other = leaves_of(std::move(b));
    const Site site = site_of_caller();
    Tensors out;
    {
      const Free free;
      out = berth::internal::trace_cond(p, one, other, site);
    }
    return to_python(out);
  });
  m.def("trace_while", [](nb::object cond, nb::object body, nb::list vars,
                          int64_t max_iterations) {
    const auto test = leaves_of(std::move(cond));
    const auto turn = leaves_of(std::move(body));
    const berth::internal::Leaves leaves{tensors_of(vars), {}};
    const Site site = site_of_caller();
    Tensors out;
    {
      const Free free;
      out = berth::internal::trace_while(
          [&](const Tensors& args) { return test(args).tensors.at(0); }, turn,
          leaves, {.max_iterations = max_iterations}, site);
    }
    return to_python(out);
  });
}

}  // namespace berth::python
