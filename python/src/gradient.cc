// GradientTape and device scopes.

#include "classes.h"
#include "convert.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

Source source_of(nb::handle o) {
  if (nb::isinstance<Variable>(o)) return nb::cast<const Variable&>(o);
  if (nb::isinstance<Tensor>(o)) return nb::cast<const Tensor&>(o);
  throw nb::type_error(
      "GradientTape: gradients are taken of tensors and variables");
}

// What open tapes have seen; the innermost is the last.
thread_local std::vector<std::vector<Variable>*> t_open;

void add_once(std::vector<Variable>& all, const Variable& v) {
  for (const Variable& known : all) {
    if (known.serial() == v.serial()) return;
  }
  all.push_back(v);
}

// A tape that is open from __enter__ to __exit__.
class Tape {
 public:
  Tape(bool persistent, bool watch) : options_{persistent, watch} {}

  // Goes on with what was recorded before, unless gradient() has used it.
  void enter() {
    if (!tape_ || spent_) return reset();
    open();
    tape_->resume(site_of_caller());
  }
  void reset() {
    tape_ = std::make_unique<GradientTape>(options_, site_of_caller());
    seen_.clear();
    kept_ = spent_ = false;
    open();
  }
  void exit() {
    std::erase(t_open, &seen_);
    if (tape_) tape_->stop(site_of_caller());
  }
  void pause() { tape().stop(site_of_caller()); }
  void resume() { tape().resume(site_of_caller()); }
  void watch(nb::handle o) {
    if (nb::isinstance<Variable>(o)) {
      tape().watch(nb::cast<const Variable&>(o), site_of_caller());
      add_once(seen_, nb::cast<const Variable&>(o));
    } else if (nb::isinstance<Tensor>(o)) {
      tape().watch(nb::cast<const Tensor&>(o), site_of_caller());
    } else {
      for (nb::handle item : o) watch(item);
    }
  }
  // [target, ...], [source, ...] -> a tensor or None for each source.
  Tensors gradient(nb::list targets, nb::list sources, nb::object given,
                   bool zeros, bool keep) {
    Tensors of;
    for (nb::handle t : targets) of.push_back(tensor_of(t.ptr()));
    std::vector<Source> by;
    for (nb::handle s : sources) by.push_back(source_of(s));
    GradientOptions options;
    options.unconnected_gradients =
        zeros ? UnconnectedGradients::kZero : UnconnectedGradients::kNone;
    if (!given.is_none()) {
      size_t i = 0;
      for (nb::handle g : given) {
        const DType d = i < of.size() ? of[i].dtype() : DType::kInvalid;
        ++i;
        options.output_grads.push_back(g.is_none() ? Tensor()
                                                   : tensor_of(g.ptr(), d));
      }
    }
    GradientTape& t = tape();
    if (!spent_ && keep != kept_) {
      t.set_persistent(keep || options_.persistent);
      kept_ = keep;
    }
    spent_ = !keep && !options_.persistent;
    const Site site = site_of_caller();
    const Free free;
    return t.gradient(of, by, options, site);
  }

  const std::vector<Variable>& watched() const { return seen_; }
  bool spent() const { return spent_; }
  ~Tape() { std::erase(t_open, &seen_); }

 private:
  GradientTape& tape() {
    if (!tape_) {
      throw errors::FailedPrecondition(
          "a GradientTape records inside of its `with` block");
    }
    return *tape_;
  }
  void open() {
    std::erase(t_open, &seen_);
    if (options_.watch_accessed_variables) t_open.push_back(&seen_);
  }
  TapeOptions options_;
  bool kept_ = false;   // for a further gradient()
  bool spent_ = false;  // gradient() was called
  std::vector<Variable> seen_;
  std::unique_ptr<GradientTape> tape_;
};

// A device scope from __enter__ to __exit__.
class Scope {
 public:
  explicit Scope(std::optional<std::string> name) : name_(std::move(name)) {}
  void enter() {
    const Site site = site_of_caller();
    if (name_) {
      guard_ = std::make_unique<DeviceGuard>(*name_, site);
    } else {
      guard_ = std::make_unique<DeviceGuard>(no_device, site);
    }
  }
  void exit() { guard_.reset(); }

 private:
  std::optional<std::string> name_;
  std::unique_ptr<DeviceGuard> guard_;
};

}  // namespace

bool tape_is_open() { return !t_open.empty(); }
void note_read(const Variable& v) {
  if (!v.trainable()) return;
  for (auto* seen : t_open) add_once(*seen, v);
}

void add_gradient(nb::module_& m) {
  nb::class_<Tape>(m, "Tape")
      .def(nb::init<bool, bool>())
      .def("enter", &Tape::enter)
      .def("exit", &Tape::exit)
      .def("pause", &Tape::pause)
      .def("resume", &Tape::resume)
      .def("watch", &Tape::watch)
      .def("watched", [](const Tape& t) { return to_python(t.watched()); })
      .def("reset", &Tape::reset)
      .def("spent", &Tape::spent)
      .def(
          "gradient",
          [](Tape& t, nb::list targets, nb::list sources, nb::object given,
             bool zeros, bool keep) {
            return to_python(t.gradient(targets, sources, given, zeros, keep));
          },
          "targets"_a, "sources"_a, "given"_a.none(), "zeros"_a, "keep"_a);
  nb::class_<Scope>(m, "DeviceScope")
      .def(nb::init<std::optional<std::string>>(), "name"_a.none())
      .def("enter", &Scope::enter)
      .def("exit", &Scope::exit);
  m.def("device_scope", [] {  // of the user's, merged over the outer ones
    const DeviceScope* s = t_state.scope;
    return s && s->kind == ScopeKind::kUser ? s->name.str() : std::string();
  });
}

}  // namespace berth::python
