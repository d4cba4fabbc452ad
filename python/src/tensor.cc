// Tensor, Variable, DType, Shape and IndexedSlices as classes of Python.

#include <nanobind/operators.h>

#include "arguments.h"
#include "classes.h"
#include "convert.h"
#include "ops/in_scope.h"
#include "ops/replica_part.h"
#include "sharing.h"
#include "values.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using Binary = Tensor (*)(const Tensor&, const Tensor&, Site);

// One side of an operator, or an empty handle for what may have operators of
// its own. Numbers and arrays have none that keep tapes and devices.
Tensor side(nb::handle o, DType hint) {
  try {
    return tensor_of(o.ptr(), hint);
  } catch (const NotThat& e) {
    if (!PyNumber_Check(o.ptr()) && !is_list(o.ptr()) &&
        !is_tensor_like(o.ptr())) {
      return {};
    }
    throw nb::type_error(
        ("the other side of an operator must be " + std::string(e.what()))
            .c_str());
  }
}

template <Binary kOp, bool kReversed>
nb::object binary(nb::handle self, nb::handle other) {
  const Tensor a = tensor_of(self.ptr());
  const Tensor b = side(other, a.dtype());
  if (!b.defined()) return nb::borrow(Py_NotImplemented);
  const Site site = site_of_caller();
  Tensor out;
  {
    const Free free;
    out = kReversed ? kOp(b, a, site) : kOp(a, b, site);
  }
  return to_python(out);
}

Tensor true_divide(const Tensor& a, const Tensor& b, Site site) {
  if (is_integer(a.dtype()) && is_integer(b.dtype())) {
    const DType d = size_of(a.dtype()) < 4 ? float32 : float64;
    return math::divide(cast(a, d, site), cast(b, d, site), site);
  }
  return math::divide(a, b, site);
}
// Text is joined.
Tensor sum(const Tensor& a, const Tensor& b, Site site) {
  return a.dtype() == string_ && b.dtype() == string_
             ? strings::join({a, b}, "", site)
             : math::add(a, b, site);
}
Tensor times(const Tensor& a, const Tensor& b, Site site) {
  return a.dtype() == bool_ ? math::logical_and(a, b, site)
                            : math::multiply(a, b, site);
}
Tensor both(const Tensor& a, const Tensor& b, Site site) {
  return a.dtype() == bool_ ? math::logical_and(a, b, site)
                            : bitwise::bitwise_and(a, b, site);
}
Tensor either(const Tensor& a, const Tensor& b, Site site) {
  return a.dtype() == bool_ ? math::logical_or(a, b, site)
                            : bitwise::bitwise_or(a, b, site);
}
Tensor one_of(const Tensor& a, const Tensor& b, Site site) {
  return a.dtype() == bool_ ? math::logical_xor(a, b, site)
                            : bitwise::bitwise_xor(a, b, site);
}
// Tensors of shapes that do not fit each other differ, as in TensorFlow.
bool fit(const Shape& a, const Shape& b) {
  for (int k = 1; k <= std::min(a.rank(), b.rank()); ++k) {
    const int64_t n = a[a.rank() - k], m = b[b.rank() - k];
    if (n != m && n != 1 && m != 1 && n >= 0 && m >= 0) return false;
  }
  return true;
}
Tensor same(const Tensor& a, const Tensor& b, Site site) {
  return fit(a.shape(), b.shape()) ? math::equal(a, b, site) : constant(false);
}
Tensor differ(const Tensor& a, const Tensor& b, Site site) {
  return fit(a.shape(), b.shape()) ? math::not_equal(a, b, site)
                                   : constant(true);
}
Tensor product(const Tensor& a, const Tensor& b, Site site) {
  return matmul(a, b, {}, site);
}

template <Tensor (*kOp)(const Tensor&, Site)>
Tensor alone(nb::handle h) {
  const Tensor t = tensor_of(h.ptr());
  const Site site = site_of_caller();
  return freely([&] { return kOp(t, site); });
}

template <class T>
T item(const Tensor& t) {
  const Site site = site_of_caller();
  return freely([&] { return known(t).item<T>(site); });
}

Tensor value_of(const Variable& v) {
  const Site site = site_of_caller();
  return freely([&] { return v.value(site); });
}

// t[parts]; a part is (begin or None, end or None, stride), or an index.
Tensor getitem(nb::handle h, nb::list parts) {
  std::vector<int64_t> begin, end;
  StridedSliceOptions o;
  int axis = 0;
  for (nb::handle p : parts) {
    if (nb::isinstance<nb::tuple>(p)) {
      const auto t = nb::borrow<nb::tuple>(p);
      if (t[0].is_none()) o.begin_mask |= int64_t{1} << axis;
      if (t[1].is_none()) o.end_mask |= int64_t{1} << axis;
      begin.push_back(t[0].is_none() ? 0 : nb::cast<int64_t>(t[0]));
      end.push_back(t[1].is_none() ? 0 : nb::cast<int64_t>(t[1]));
      o.strides.push_back(nb::cast<int64_t>(t[2]));
    } else {
      const auto at = nb::cast<int64_t>(p);
      begin.push_back(at);
      end.push_back(at + 1);
      if (at == -1) o.end_mask |= int64_t{1} << axis;
      o.shrink_axis_mask |= int64_t{1} << axis;
      o.strides.push_back(1);
    }
    ++axis;
  }
  const Tensor t = tensor_of(h.ptr());
  const Site site = site_of_caller();
  const Free free;
  return strided_slice(t, begin, end, o, site);
}

template <class T>
void add_operators(nb::class_<T>& c) {
  const auto two = [&]<Binary kOp>(const char* name, const char* reversed) {
    c.def(name, binary<kOp, false>, nb::is_operator());
    if (reversed) c.def(reversed, binary<kOp, true>, nb::is_operator());
  };
  two.template operator()<&sum>("__add__", "__radd__");
  two.template operator()<&math::subtract>("__sub__", "__rsub__");
  two.template operator()<&times>("__mul__", "__rmul__");
  two.template operator()<&true_divide>("__truediv__", "__rtruediv__");
  two.template operator()<&math::floordiv>("__floordiv__", "__rfloordiv__");
  two.template operator()<&math::floormod>("__mod__", "__rmod__");
  two.template operator()<&math::pow>("__pow__", "__rpow__");
  two.template operator()<&product>("__matmul__", "__rmatmul__");
  two.template operator()<&both>("__and__", "__rand__");
  two.template operator()<&either>("__or__", "__ror__");
  two.template operator()<&one_of>("__xor__", "__rxor__");
  two.template operator()<&math::less>("__lt__", nullptr);
  two.template operator()<&math::less_equal>("__le__", nullptr);
  two.template operator()<&math::greater>("__gt__", nullptr);
  two.template operator()<&math::greater_equal>("__ge__", nullptr);
  two.template operator()<&same>("__eq__", nullptr);
  two.template operator()<&differ>("__ne__", nullptr);
}

template <class T>
void add_conversions(nb::class_<T>& c) {
  c.def("__neg__", [](nb::handle h) { return alone<&math::negative>(h); });
  c.def("__abs__", [](nb::handle h) { return alone<&math::abs>(h); });
  c.def("__invert__", [](nb::handle h) {
    return is_integer(tensor_of(h.ptr()).dtype())
               ? alone<&bitwise::invert>(h)
               : alone<&math::logical_not>(h);
  });
  c.def("_array", [](nb::handle h) { return array_of(tensor_of(h.ptr())); });
  // Returns NumPy's scalar, or bytes, for a scalar.
  c.def(
      "numpy",
      [](nb::handle h) {
        nb::object array = array_of(tensor_of(h.ptr()));
        if (tensor_of(h.ptr()).rank() > 0) return array;
        return nb::object(array[nb::make_tuple()]);
      },
      "The values as an array of one's own; of a scalar NumPy's, or bytes.");
  c.def("__float__",
        [](nb::handle h) { return item<double>(tensor_of(h.ptr())); });
  c.def("__int__", [](nb::handle h) {
    const Tensor t = tensor_of(h.ptr());
    return t.dtype() == uint64 ? nb::int_(item<uint64_t>(t))
                               : nb::int_(item<int64_t>(t));
  });
  c.def("__bool__", [](nb::handle h) {
    const Tensor t = tensor_of(h.ptr());
    return t.dtype() == bool_ ? item<bool>(t) : item<double>(t) != 0;
  });
  c.def("_getitem", &getitem);
  c.def_prop_ro("dtype", [](nb::handle h) {
    return to_python(dtype_of_python(h.ptr()));
  });
  c.def_prop_ro("device", [](const T& t) { return t.device(); });
}

void add_shape(nb::module_& m) {
  nb::class_<Shape> c(m, "TensorShape");
  construct<Shape>(c, "TensorShape", [](Shape* self, Arguments& a) {
    static constexpr Name kNames[] = {{"dims", "dims"}};
    a.bind(kNames, 1);
    new (self) Shape(a.get<Shape>(0));
  });
  c.def_prop_ro("rank", &Shape::rank)
      .def(
          "num_elements",
          [](const Shape& s) -> nb::object {
            if (!s.is_fully_defined()) return nb::none();
            return nb::int_(s.num_elements());
          },
          "The product of the sizes, None if one is not known.")
      .def("is_fully_defined", &Shape::is_fully_defined,
           "True if each size is known.")
      .def(
          "is_compatible_with",
          [](const Shape& s, nb::handle o) {
            return s.compatible_with(From<Shape>::get(o.ptr(), {}));
          },
          "other"_a, "True if one shape could be both.")
      .def("_dims", [](const Shape& s) {
        nb::list all;
        for (const int64_t d : s) {
          if (d < 0) {
            all.append(nb::none());
          } else {
            all.append(d);
          }
        }
        return all;
      });
}

void add_dtype(nb::module_& m) {
  nb::class_<PyDType>(m, "DType")
      .def_prop_ro(
          "name",
          [](const PyDType& d) { return std::string(name_of(d.value)); })
      .def_prop_ro("size", [](const PyDType& d) { return size_of(d.value); })
      .def_prop_ro("is_floating",
                   [](const PyDType& d) { return is_floating(d.value); })
      .def_prop_ro("is_integer",
                   [](const PyDType& d) { return is_integer(d.value); })
      .def_prop_ro("is_complex",
                   [](const PyDType& d) { return is_complex(d.value); })
      .def_prop_ro("is_bool", [](const PyDType& d) { return d.value == bool_; })
      .def("__repr__",
           [](const PyDType& d) {
             return std::string("tf.") + name_of(d.value);
           })
      .def("__hash__",
           [](const PyDType& d) { return static_cast<int>(d.value); })
      .def(
          "__eq__",
          [](const PyDType& d, nb::handle o) {
            try {
              return !o.is_none() && From<DType>::get(o.ptr(), {}) == d.value;
            } catch (const NotThat&) {
              return false;
            }
          },
          "other"_a.none());
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto d = static_cast<DType>(i);
    m.attr(name_of(d)) = PyDType{d};
  }
}

// A tensor of `value` in the dtype that the user asks for, where a scope asks.
Tensor asked_tensor(nb::handle value, DType dtype) {
  try {
    const Tensor t = tensor_of(value.ptr(), dtype, true);
    if (nb::isinstance<Tensor>(value) || nb::isinstance<Variable>(value)) {
      if (dtype == DType::kInvalid || t.dtype() == dtype) return t;
      throw nb::value_error((std::string("a tensor of ") + name_of(t.dtype()) +
                             " was given where " + name_of(dtype) +
                             " is asked for; tf.cast changes dtypes")
                                .c_str());
    }
    return in_scope(t, site_of_caller());
  } catch (const NotThat& e) {
    const Advice advice = advice_of(value.ptr());
    if (!advice.kind.empty()) {
      throw nb::type_error(
          ("expected a tensor, not a " + advice.kind + "; " + advice.text)
              .c_str());
    }
    std::string text = nb::cast<std::string>(nb::repr(value));
    if (text.size() > 80) text = text.substr(0, 77) + "...";
    throw nb::type_error(
        ("expected " + std::string(e.what()) + ", not " + text).c_str());
  }
}

// What writes of variables are passed to on a thread that runs a replica op by
// op: (variable, name of the method, value), true where it has written.
thread_local PyObject* t_writer = nullptr;

bool written_by_replica(const Variable& v, const char* name, nb::handle value) {
  return t_writer != nullptr &&
         nb::cast<bool>(nb::handle(t_writer)(v, name, value));
}

using Write = const Variable& (Variable::*)(const Tensor&, Site) const;
void add_write(nb::class_<Variable>& c, const char* name, Write write,
               const char* doc) {
  c.def(
      name,
      [write, name](const Variable& v, nb::handle value, nb::kwargs) {
        if (written_by_replica(v, name, value)) return v;
        const Tensor t = tensor_of(value.ptr(), v.dtype());
        const Site site = site_of_caller();
        {
          const Free free;
          (v.*write)(t, site);
        }
        return v;
      },
      "value"_a, "kwargs"_a, doc);
}

// What is called where a variable is made inside a trace.
nb::object& refuse_in_trace() {
  static auto* fn = new nb::object();
  return *fn;
}

// What is called with the value and the shape that a variable is made of;
// returns the sizes where some may change, True where the rank may, else None.
nb::object& check_variable_shape() {
  static auto* fn = new nb::object();
  return *fn;
}

// The open name scopes, "outer/inner/".
thread_local std::string t_name_scope;

// What TensorFlow calls a variable: the first result of what made it.
std::string named(const std::string& name) {
  return name.ends_with(":0") ? name : t_name_scope + name + ":0";
}

void add_variable(nb::module_& m) {
  m.def(
      "make_variable",
      [](nb::handle value, bool trainable, std::string name, nb::handle dtype,
         int64_t synchronization, int64_t aggregation) {
        if (berth::internal::traces_loop()) refuse_in_trace()();
        VariableOptions o;
        o.trainable = trainable;
        o.name = std::move(name);
        o.synchronization =
            static_cast<VariableSynchronization>(synchronization);
        o.aggregation = static_cast<VariableAggregation>(aggregation);
        const DType d = dtype.is_none() ? DType::kInvalid
                                        : From<DType>::get(dtype.ptr(), {});
        return Variable(known(asked_tensor(value, d)), o, site_of_caller());
      },
      "value"_a, "trainable"_a, "name"_a, "dtype"_a.none(), "synchronization"_a,
      "aggregation"_a, "A variable of just that name.");
  m.def(
      "_set_replica",
      [](int replica, nb::handle writer) {
        berth::replica_op_by_op() = replica;
        nb::handle(std::exchange(t_writer, writer.is_none()
                                               ? nullptr
                                               : writer.inc_ref().ptr()))
            .dec_ref();
      },
      "replica"_a, "writer"_a.none(),
      "The thread runs a replica op by op; -1, None: no longer.");
  m.def("_set_name_scope",
        [](std::string name) { t_name_scope = std::move(name); });
  m.def("set_variable_hook",
        [](nb::object fn) { refuse_in_trace() = std::move(fn); });
  m.def("set_variable_shape_hook",
        [](nb::object fn) { check_variable_shape() = std::move(fn); });
  nb::class_<Variable> c(m, "Variable", nb::dynamic_attr(),
                         nb::is_weak_referenceable());
  construct<Variable>(c, "Variable", [](Variable* self, Arguments& a) {
    static constexpr Name kNames[] = {{"initial_value", "initial_value"},
                                      {"trainable", "trainable"},
                                      {"validate_shape", "validate_shape"},
                                      {"caching_device", "caching_device"},
                                      {"name", "name"},
                                      {"variable_def", "variable_def"},
                                      {"dtype", "dtype"},
                                      {"import_scope", "import_scope"},
                                      {"constraint", "constraint"},
                                      {"synchronization", "synchronization"},
                                      {"aggregation", "aggregation"},
                                      {"shape", "shape"},
                                      {"experimental_enable_variable_lifting",
                                       "experimental_enable_variable_lifting"}};
    a.bind(kNames, 13);
    if (berth::internal::traces_loop()) refuse_in_trace()();
    nb::object value = a.needed(0);
    if (PyCallable_Check(value.ptr()) && !is_tensor_like(value.ptr())) {
      value = value();
    }
    VariableOptions o;
    if (!a.object(1).is_none()) a.set(1, o.trainable);
    o.name = named(a.object(4).is_none() ? "Variable" : a.get<std::string>(4));
    const DType d = a.object(6).is_none() ? DType::kInvalid : a.get<DType>(6);
    o.synchronization =
        static_cast<VariableSynchronization>(a.get_or<int64_t>(9, 0));
    o.aggregation = static_cast<VariableAggregation>(a.get_or<int64_t>(10, 0));
    const Tensor t = known(asked_tensor(value, d));
    if (!a.object(11).is_none()) {
      const nb::object shape = check_variable_shape()(t, a.object(11));
      o.any_shape = shape.is(nb::bool_(true));
      if (!o.any_shape && !shape.is_none()) {
        o.shape = Shape(nb::cast<std::vector<int64_t>>(shape));
      }
    }
    new (self) Variable(t, o, a.site());
    if (!a.object(8).is_none()) {
      nb::setattr(nb::find(*self), "constraint", a.object(8));
    }
  });
  add_operators(c);
  add_conversions(c);
  c.def_prop_ro("name", [](const Variable& v) { return v.name(); })
      .def_prop_ro("shape",
                   [](const Variable& v) -> nb::object {
                     const auto shape = v.shape_of_all();
                     if (shape) return nb::cast(*shape);
                     return nb::module_::import_("berth._tensor")
                         .attr("AnyShape")(nb::none());
                   })
      .def_prop_ro("trainable", &Variable::trainable)
      .def("read_value", &value_of, "The value as a tensor.")
      .def("value", &value_of, "The value as a tensor.")
      .def_prop_ro("_how",  // (aggregation, synchronization)
                   [](const Variable& v) {
                     return nb::make_tuple(
                         static_cast<int>(v.aggregation()),
                         static_cast<int>(v.synchronization()));
                   })
      .def("_serial", &Variable::serial)
      .def("_handle",  // what ops that update it take
           [](const Variable& v) {
             if (berth::replica_op_by_op() >= 0) {
               throw errors::Unimplemented(
                   "an op that updates variable '" + v.name() +
                   "' in a replica that runs op by op, which a value that the "
                   "function reads makes necessary: use its assign(), or the "
                   "optimizers of Keras");
             }
             return v.handle();
           })
      .def("__hash__", [](const Variable& v) {
        return static_cast<Py_hash_t>(v.serial());
      });
  add_write(c, "assign", &Variable::assign, "Sets the value.");
  add_write(c, "assign_add", &Variable::assign_add, "Adds to the value.");
  add_write(c, "assign_sub", &Variable::assign_sub,
            "Subtracts from the value.");
  const auto scatter = [&](const char* name, auto method, const char* doc) {
    c.def(
        name,
        [method, name](const Variable& v, nb::handle slices, nb::kwargs) {
          if (written_by_replica(v, name, slices)) return v;
          const IndexedSlices s{
              tensor_of(slices.attr("values").ptr(), v.dtype()),
              tensor_of(slices.attr("indices").ptr())};
          const Site site = site_of_caller();
          freely([&] { (v.*method)(s, site); });
          return v;
        },
        "sparse_delta"_a, "kwargs"_a, doc);
  };
  scatter("scatter_add", &Variable::scatter_add,
          "Adds the rows of a tf.IndexedSlices.");
  scatter("scatter_sub", &Variable::scatter_sub,
          "Subtracts the rows of a tf.IndexedSlices.");
  scatter("scatter_mul", &Variable::scatter_mul,
          "Multiplies by the rows of a tf.IndexedSlices.");
  scatter("scatter_div", &Variable::scatter_div,
          "Divides by the rows of a tf.IndexedSlices.");
  scatter("scatter_min", &Variable::scatter_min,
          "Keeps the lesser of a row and that of a tf.IndexedSlices.");
  scatter("scatter_max", &Variable::scatter_max,
          "Keeps the greater of a row and that of a tf.IndexedSlices.");
  scatter("scatter_update", &Variable::scatter_update,
          "Sets the rows of a tf.IndexedSlices.");
}

}  // namespace

void add_tensor(nb::module_& m) {
  add_dtype(m);
  add_shape(m);
  nb::class_<Tensor> c(m, "Tensor", nb::dynamic_attr(),
                       nb::is_weak_referenceable(),
                       nb::type_slots(buffer_slots()));
  add_operators(c);
  add_conversions(c);
  c.def_prop_ro("shape", [](const Tensor& t) { return t.shape(); })
      .def_prop_ro("backing_device",
                   [](const Tensor& t) { return t.backing_device(); })
      .def_prop_ro("is_symbolic",
                   [](const Tensor& t) { return t.is_symbolic(); })
      .def("_id", [](const Tensor& t) {
        return reinterpret_cast<uintptr_t>(t.impl());
      });
  add_variable(m);
  m.def(
      "convert",
      [](nb::handle value, nb::handle dtype) {
        return asked_tensor(value, dtype.is_none()
                                       ? DType::kInvalid
                                       : From<DType>::get(dtype.ptr(), {}));
      },
      "value"_a.none(), "dtype"_a.none() = nb::none());
}

}  // namespace berth::python
