#include "arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "errors.h"
#include "values.h"

namespace berth::python {

void Arguments::bind(const Name* names, size_t count) {
  bound_ = names;
  count_ = count;
  std::memset(slots_, 0, sizeof(slots_));
  if (given_ > count) {
    throw NoMatch(fmt::format("{}() takes {} arguments, {} were given",
                              function_, count, given_));
  }
  for (size_t i = 0; i < given_; ++i) slots_[i] = args_[i];
  const size_t named =
      names_ == nullptr ? 0 : static_cast<size_t>(PyTuple_Size(names_));
  for (size_t k = 0; k < named; ++k) {
    const char* name = PyUnicode_AsUTF8AndSize(
        PyTuple_GetItem(names_, static_cast<Py_ssize_t>(k)), nullptr);
    size_t at = 0;
    while (at < count && std::strcmp(names[at].tensorflow, name) != 0 &&
           std::strcmp(names[at].own, name) != 0) {
      ++at;
    }
    if (at == count) {
      if (std::strcmp(name, "name") == 0) continue;
      std::string all;
      for (size_t i = 0; i < count; ++i) {
        all += fmt::format("{}{}", i ? ", " : "", names[i].tensorflow);
      }
      throw NoMatch(fmt::format("{}() has no argument '{}'; it has ({})",
                                function_, name, all));
    }
    if (slots_[at] != nullptr) {
      throw NoMatch(fmt::format("{}() got '{}' twice", function_, name));
    }
    slots_[at] = args_[given_ + k];
  }
}

namespace {

// Returns kInvalid for values that do not become tensors.
DType dtype_if_tensor(PyObject* o) {
  try {
    return tensor_of(o).dtype();
  } catch (const NotThat&) {
    return DType::kInvalid;
  }
}

}  // namespace

DType Arguments::hint(size_t slot) const {
  // Counts and places stay whole numbers beside tensors of floats.
  static constexpr std::string_view kWhole[] = {
      "indices",   "ids",  "labels",    "segment_ids",
      "lengths",   "k",    "y_true",    "targets",
      "condition", "mask", "boxes_ind", "row_splits"};
  const auto is_apart = [&](size_t i) {
    return std::ranges::any_of(kWhole, [&](std::string_view name) {
      return name == bound_[i].tensorflow || name == bound_[i].own;
    });
  };
  if (is_apart(slot)) return DType::kInvalid;
  // Tensors say it; else what comes first, as in TensorFlow.
  for (size_t i = 0; i < count_; ++i) {
    if (i != slot && slots_[i] != nullptr && is_own(slots_[i]) &&
        !is_apart(i)) {
      return dtype_of_python(slots_[i]);
    }
  }
  const auto is_operand = [&](size_t i) {
    const std::string_view name = bound_[i].tensorflow;
    return slots_[i] != nullptr && (name == "x" || name == "y");
  };
  const bool array = is_tensor_like(slots_[slot]);
  for (size_t i = 0; i < count_; ++i) {
    if (i == slot || slots_[i] == nullptr || !is_tensor_like(slots_[i]) ||
        is_apart(i)) {
      continue;
    }
    if (i < slot) return dtype_of_python(slots_[i]);
    // Whole numbers of Python are floats beside an array of floats.
    const DType dtype = dtype_of_python(slots_[i]);
    if (!array && (!is_operand(slot) || !is_inexact(dtype) ||
                   is_integer(tensor_of(slots_[slot]).dtype()))) {
      return dtype;
    }
  }
  // maximum([0.], [1]): whole numbers beside floats of Python are floats.
  static constexpr std::string_view kSides[] = {
      "x", "y", "a", "b", "t", "clip_value_min", "clip_value_max"};
  const auto is_side = [&](size_t i) {
    return slots_[i] != nullptr &&
           std::ranges::count(kSides, bound_[i].tensorflow) > 0;
  };
  if (array ? !is_operand(slot) : !is_side(slot)) return DType::kInvalid;
  for (size_t i = 0; i < count_; ++i) {
    if (i == slot || !is_side(i) || (array && i > slot)) continue;
    const DType dtype = dtype_if_tensor(slots_[i]);
    if (is_inexact(dtype)) return dtype;
  }
  return DType::kInvalid;
}

void Arguments::missing(size_t slot) const {
  throw NoMatch(fmt::format("{}() needs the argument '{}'", function_,
                            bound_[slot].tensorflow));
}

std::string Arguments::describe(size_t slot, const char* why) const {
  const Advice advice = advice_of(slots_[slot]);
  const std::string_view wanted = why;
  if (!advice.kind.empty() && (wanted.ends_with("lists of equal lengths") ||
                               wanted == "a list of tensors")) {
    return fmt::format("{}(): '{}' must be {}, not a {}; {}", function_,
                       bound_[slot].tensorflow,
                       wanted.ends_with("tensors") ? wanted : "a tensor",
                       advice.kind, advice.text);
  }
  const std::string text =
      nb::cast<std::string>(nb::repr(nb::handle(slots_[slot])));
  return fmt::format("{}(): '{}' must be {}, not {}", function_,
                     bound_[slot].tensorflow, why,
                     text.size() > 80 ? text.substr(0, 77) + "..." : text);
}

namespace {

// A function of Python: the table entry stands after its method definition.
struct Callable {
  PyMethodDef method;
  Bound bound;
};

// What a function of Python answers to a call of the engine's `name`; null
// where it gives NotImplemented.
nb::object asked(const char* module, const char* function, const char* name,
                 PyObject* const* args, Py_ssize_t given, PyObject* names) {
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  nb::list positional;
  nb::dict by_name;
  for (Py_ssize_t i = 0; i < given; ++i) positional.append(nb::handle(args[i]));
  for (Py_ssize_t i = 0; i < named; ++i) {
    by_name[nb::handle(PyTuple_GetItem(names, i))] =
        nb::handle(args[given + i]);
  }
  nb::object out =
      nb::module_::import_(module).attr(function)(name, positional, by_name);
  return out.is(nb::handle(Py_NotImplemented)) ? nb::object() : out;
}

// What berth._dispatch answers to a call with values of classes that are
// loaded when they are used first, such as RaggedTensor; null where nobody
// answers. In `tf.reduce_sum(tf.ragged.constant(rows))` Python reads the
// function before the class is there, so it is the engine's own.
nb::object answered_late(const char* name, PyObject* const* args,
                         Py_ssize_t given, PyObject* names) {
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  if (std::none_of(args, args + given + named, [](PyObject* value) {
        return !advice_of(value).kind.empty();
      })) {
    return {};
  }
  return asked("berth._dispatch", "answered_late", name, args, given, names);
}

PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t given,
               PyObject* names) {
  const auto* c =
      static_cast<const Callable*>(PyCapsule_GetPointer(self, nullptr));
  std::string why;
  for (const Routine routine : c->bound.routines) {
    Arguments a(c->method.ml_name, args, static_cast<size_t>(given), names);
    try {
      return routine(a);
    } catch (const NoMatch& e) {
      why += (why.empty() ? "" : "; or: ") + std::string(e.what());
    } catch (nb::python_error& e) {
      e.restore();
      return nullptr;
    } catch (const errors::Error& e) {
      set_python_error(e);
      return nullptr;
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
      return nullptr;
    }
  }
  try {
    nb::object out = answered_late(c->method.ml_name, args, given, names);
    if (out.is_valid()) return out.release().ptr();
    out = asked("berth._other_forms", "other_form", c->bound.path.c_str(), args,
                given, names);
    if (out.is_valid()) return out.release().ptr();
  } catch (nb::python_error& e) {
    e.restore();
    return nullptr;
  }
  PyErr_SetString(PyExc_TypeError, why.c_str());
  return nullptr;
}

// The module of a path's parts but the last, made when it is not there.
nb::object module_for(nb::object at, const std::string& path,
                      std::string* last) {
  size_t begin = 0;
  for (size_t dot; (dot = path.find('.', begin)) != std::string::npos;
       begin = dot + 1) {
    const std::string part = path.substr(begin, dot - begin);
    if (!nb::hasattr(at, part.c_str())) {
      const std::string name =
          nb::cast<std::string>(at.attr("__name__")) + "." + part;
      nb::object made =
          nb::steal(PyModule_New(name.c_str()));  // its own reference
      at.attr(part.c_str()) = made;
    }
    at = at.attr(part.c_str());
  }
  *last = path.substr(begin);
  return at;
}

}  // namespace

std::vector<Bound> bound_0();
std::vector<Bound> bound_1();
std::vector<Bound> bound_2();
std::vector<Bound> bound_3();

void add_functions(nb::module_& root) {
  static const std::pair<const char*, const char*> kAliases[] = {
#include "aliases.inc"
  };
  std::map<std::string, nb::object> made;
  for (auto* part : {bound_0, bound_1, bound_2, bound_3}) {
    for (Bound& bound : part()) {
      // Lives as long as the interpreter.
      auto* c = new Callable{{}, std::move(bound)};
      std::string last;
      nb::object module = module_for(root, c->bound.path, &last);
      c->method.ml_name = strdup(last.c_str());
      c->method.ml_meth = reinterpret_cast<PyCFunction>(call);
      c->method.ml_flags = METH_FASTCALL | METH_KEYWORDS;
      c->method.ml_doc = c->bound.doc.c_str();
      nb::object self = nb::steal(PyCapsule_New(c, nullptr, nullptr));
      nb::object fn = nb::steal(PyCFunction_New(&c->method, self.ptr()));
      module.attr(last.c_str()) = fn;
      made[c->bound.path] = fn;
    }
  }
  for (const auto& [alias, target] : kAliases) {
    std::string last;
    nb::object module = module_for(root, alias, &last);
    if (made.contains(target)) module.attr(last.c_str()) = made[target];
  }
}

}  // namespace berth::python
