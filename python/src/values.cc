// Values of Python and NumPy as tensors, and back.

#include "values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "function/known_value.h"
#include "gil.h"
#include "sharing.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

// Imported once; lives as long as the interpreter.
nb::object& numpy() {
  static auto* module = new nb::object(nb::module_::import_("numpy"));
  return *module;
}

std::string text_of(nb::handle h) {
  const nb::object text = nb::str(h);
  Py_ssize_t size = 0;
  const char* begin = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (begin == nullptr) nb::raise_python_error();
  return {begin, static_cast<size_t>(size)};
}

bool is_array(PyObject* o) {
  return PyObject_HasAttrString(o, "__array__") ||
         PyObject_HasAttrString(o, "__array_interface__");
}

Advice advice_of(PyObject* o) {
  if (is_list(o)) {
    for (const nb::object& item : items_of(o)) {
      if (is_list(item.ptr())) continue;
      const Advice advice = advice_of(item.ptr());
      if (!advice.kind.empty()) return advice;
    }
  } else if (!PyType_Check(o)) {
    const nb::object text =
        nb::getattr(nb::handle(o), "__berth_advice__", nb::none());
    if (PyUnicode_Check(text.ptr())) {
      return {text_of(nb::handle(o).type().attr("__name__")), text_of(text)};
    }
  }
  return {};
}

namespace {

constexpr int kMaxListDepth = 32;

Tensor strings_of(nb::object array) {
  std::vector<int64_t> dims =
      nb::cast<std::vector<int64_t>>(nb::list(array.attr("shape")));
  std::vector<std::string> all;
  for (nb::handle item : array.attr("ravel")().attr("tolist")()) {
    if (PyBytes_Check(item.ptr())) {
      all.emplace_back(PyBytes_AsString(item.ptr()),
                       static_cast<size_t>(PyBytes_Size(item.ptr())));
    } else if (PyUnicode_Check(item.ptr())) {
      all.push_back(text_of(item));
    } else {
      throw NotThat("numbers of one kind, or text, in lists of equal lengths");
    }
  }
  return constant(std::span<const std::string>(all), Shape(dims), {});
}

// What values are; a kind holds those before it, but text.
enum Kind { kTruth, kWhole, kReal, kComplex, kText, kOther };

Kind kind_of(DType d) {
  return d == bool_       ? kTruth
         : is_integer(d)  ? kWhole
         : is_floating(d) ? kReal
         : is_complex(d)  ? kComplex
         : d == string_   ? kText
                          : kOther;
}

bool holds(DType d, Kind values) {
  const Kind kind = kind_of(d);
  return kind == values || (values < kind && kTruth < kind && kind < kText);
}

nb::object numpy_dtype(DType d) {
  if (d == bfloat16) return nb::module_::import_("ml_dtypes").attr("bfloat16");
  return numpy().attr("dtype")(std::string(name_of(d)));
}

std::string dtype_name(nb::handle array) {
  return text_of(array.attr("dtype").attr("name"));
}

// The type of an array's elements, as NumPy's "<f4" says it.
struct ListElements {
  explicit ListElements(nb::handle array)
      : text(text_of(array.attr("dtype").attr("str"))),
        type(text[1]),
        size(std::atoi(text.c_str() + 2)) {
    if (type == 'V' && dtype_name(array) == "bfloat16") type = 'B';
  }
  bool is(const char* what) const { return text.compare(1, 2, what) == 0; }
  // That of a tensor.
  DType dtype() const {
    switch (type) {
      case 'b':
        return bool_;
      case 'B':
        return bfloat16;
      case 'i':
        return size == 1 ? int8 : size == 2 ? int16 : size == 4 ? int32 : int64;
      case 'u':
        return size == 1   ? uint8
               : size == 2 ? uint16
               : size == 4 ? uint32
                           : uint64;
      case 'f':
        return size == 2   ? float16
               : size == 4 ? float32
               : size == 8 ? float64
                           : DType::kInvalid;
      case 'c':
        return size == 8    ? complex64
               : size == 16 ? complex128
                            : DType::kInvalid;
      default:
        return DType::kInvalid;
    }
  }
  Kind kind() const {
    switch (type) {
      case 'u':
        return kWhole;
      case 'f':
        return kReal;
      case 'S':
      case 'U':
        return kText;
      default:
        return kind_of(dtype());
    }
  }
  bool native() const { return text[0] != '>'; }

  std::string text;
  char type;
  int size;  // in bytes, but for text
};

// The values of an array in another dtype. Those that only stand beside a
// tensor of that dtype stay what they are, up to rounding.
nb::object converted(nb::object array, DType to, bool asked) {
  const nb::object given = array;
  nb::object made;
  try {
    if (!asked && kind_of(to) <= kReal) array = numpy().attr("real")(array);
    made = array.attr("astype")(numpy_dtype(to));
  } catch (nb::python_error&) {
    throw NotThat(fmt::format("values of {}", name_of(to)));
  }
  const auto is_so = [](const nb::object& truth) {
    return PyObject_IsTrue(truth.ptr()) == 1;
  };
  if (!asked &&
      ((kind_of(to) <= kWhole &&
        !is_so(numpy().attr("array_equal")(made, given))) ||
       (kind_of(to) == kReal && is_so(numpy().attr("iscomplexobj")(given)) &&
        is_so(numpy().attr("iscomplex")(given).attr("any")())))) {
    throw NotThat(fmt::format(
        "values that {} holds, as the tensor beside it has it (array.astype() "
        "or tf.cast changes them)",
        name_of(to)));
  }
  return made;
}

// A tensor of an array, in the dtype `to` if that is valid and can be.
Tensor tensor_of_array(nb::object array, DType to, bool asked) {
  const ListElements elements(array);
  const bool objects = elements.type == 'O';
  const Kind kind = elements.kind();
  const bool number = kind_of(to) < kText;
  if (kind == kText || (objects && !number)) {
    if (!number || !asked) {
      if (asked && to != DType::kInvalid && to != string_) {
        throw NotThat(fmt::format("values of {}", name_of(to)));
      }
      return strings_of(array);
    }
  } else if (asked && to == string_) {
    if (nb::cast<int64_t>(array.attr("size")) == 0) return strings_of(array);
    throw NotThat("text");
  }
  DType dtype = elements.dtype();
  if ((kind != kOther || objects) && number && to != dtype) {
    array = converted(array, to, asked);
    dtype = to;
  } else if (dtype == DType::kInvalid) {
    throw NotThat(fmt::format(
        "of a dtype that Berth has, which {} is none of (array.astype() "
        "changes it)",
        dtype_name(array)));
  } else if (!elements.native()) {
    array = array.attr("astype")(numpy_dtype(dtype));
  }
  const auto dims =
      nb::cast<std::vector<int64_t>>(nb::list(array.attr("shape")));
  // An own copy: arrays change, tensors do not. To share a small one is not
  // worth while. The bytes are seen as uint8, since buffers know no bfloat16.
  constexpr int64_t kSharedBytes = 1 << 16;
  const bool shared =
      nb::cast<int64_t>(array.attr("nbytes")) >= kSharedBytes &&
      nb::cast<bool>(array.attr("flags").attr("c_contiguous")) &&
      nb::cast<bool>(array.attr("flags").attr("aligned")) &&
      nobody_writes(array);
  nb::object copy = shared
                        ? array
                        : numpy().attr("array")(array, "copy"_a = true,
                                                "order"_a = "C", "ndmin"_a = 1);
  nb::object bytes = copy.attr("reshape")(-1).attr("view")("uint8");
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(bytes.ptr(), view, PyBUF_SIMPLE) != 0) {
    delete view;
    nb::raise_python_error();
  }
  if (view->len == 0) {
    PyBuffer_Release(view);
    delete view;
    return zeros(Shape(dims), dtype, {});
  }
  return wrap_memory(view->buf, Shape(dims), dtype, [view] {
    const Gil gil{std::nothrow};
    if (!gil) return;
    PyBuffer_Release(view);
    delete view;
  });
}

Tensor scalar(double v, DType dtype) { return fill(Shape{}, v, dtype, {}); }

Tensor string_scalar(std::string text) {
  return constant(std::span<const std::string>(&text, 1), Shape{}, {});
}

bool is_numpy_scalar(PyObject* o) {
  static PyObject* type = nb::object(numpy().attr("generic")).release().ptr();
  return PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(type)) != 0;
}

// The item of a list or a tuple.
PyObject* item_of(PyObject* list, Py_ssize_t i) {
  return PyList_Check(list) ? PyList_GetItem(list, i)
                            : PyTuple_GetItem(list, i);
}

// Whether lists hold a tensor. They are no deeper than any tensor, so that a
// list within itself ends.
bool holds_own(PyObject* o, int depth = 0) {
  if (!is_list(o)) return is_own(o);
  if (depth > kMaxListDepth) {
    throw NotThat("lists within lists that end: a tensor has 8 dimensions");
  }
  const Py_ssize_t count = Py_SIZE(o);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const item = item_of(o, i);
    if (PyFloat_CheckExact(item) || PyLong_CheckExact(item)) continue;
    if (holds_own(item, depth + 1)) return true;
  }
  return false;
}

// A number of Python's in the dtype `to`, or in its own.
Tensor scalar_of(PyObject* o, DType to, bool asked) {
  const Kind kind = PyBool_Check(o)      ? kTruth
                    : PyLong_Check(o)    ? kWhole
                    : PyComplex_Check(o) ? kComplex
                                         : kReal;
  const bool fits = holds(to, kind);
  if (to != DType::kInvalid && !fits &&
      (asked || (kind == kReal && to != string_ && to != bool_))) {
    throw NotThat(fmt::format("{}{} (tf.cast changes dtypes)", name_of(to),
                              asked ? "" : ", as the tensor beside it"));
  }
  if (kind == kComplex) {
    const std::complex<double> v(PyComplex_RealAsDouble(o),
                                 PyComplex_ImagAsDouble(o));
    const Tensor made =
        constant(std::span<const std::complex<double>>(&v, 1), Shape{}, {});
    return fits ? cast(made, to, {}) : made;
  }
  if (kind == kReal) {
    const double v = PyFloat_AsDouble(o);
    if ((!fits || to == float32) && std::isfinite(v) &&
        !std::isfinite(static_cast<float>(v))) {
      throw NotThat("a number that float32 holds, or a wider dtype");
    }
    return scalar(PyFloat_AsDouble(o), fits ? to : float32);
  }
  if (kind == kTruth && !fits) return constant(o == Py_True, Site{});
  if (fits && is_inexact(to)) {
    const double v = PyLong_AsDouble(o);
    if (v == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      throw NotThat(fmt::format("a number that {} holds", name_of(to)));
    }
    return scalar(v, to);
  }
  if (to == uint64) {
    const uint64_t v = PyLong_AsUnsignedLongLong(o);
    const bool held = PyErr_Occurred() == nullptr;
    PyErr_Clear();
    if (held) return constant(std::span<const uint64_t>(&v, 1), Shape{}, {});
  }
  const int64_t v = From<int64_t>::get(o, {});
  if (!fits) {
    if (v == static_cast<int32_t>(v)) {
      return constant(static_cast<int32_t>(v), Site{});
    }
    return constant(v, Site{});
  }
  // A dtype that is asked for takes the low bits, as in TensorFlow: hashes are
  // written so.
  const int bits = 8 * static_cast<int>(size_of(to));
  const bool is_signed = !is_unsigned(to);
  const bool inside = to == int64 || to == bool_ ||
                      (is_signed ? v >= -(int64_t{1} << (bits - 1)) &&
                                       v < int64_t{1} << (bits - 1)
                                 : v >= 0 && v >> 1 < int64_t{1} << (bits - 1));
  if (!inside && !asked) {
    throw NotThat(fmt::format("a number that {} holds, as the tensor beside it",
                              name_of(to)));
  }
  if (to == int32) return constant(static_cast<int32_t>(v), Site{});
  return cast(constant(v, Site{}), to, {});
}

// Whether 32 bits do not hold an array of int64 or float64.
template <class T>
bool is_wide(nb::handle array, T least, T most) {
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_SIMPLE) != 0) {
    nb::raise_python_error();
  }
  const auto* v = static_cast<const T*>(view.buf);
  const bool wide =
      std::any_of(v, v + view.len / static_cast<Py_ssize_t>(sizeof(T)),
                  [&](T x) { return (x < least || x > most) && x - x == 0; });
  PyBuffer_Release(&view);
  return wide;
}

// A tensor of lists: the first value says which kind they are of, as in
// TensorFlow. Python's own are float32 and int32, NumPy's floats as they are.
Tensor tensor_of_lists(PyObject* o, DType to, bool asked) {
  PyObject* first = o;
  while (is_list(first) && Py_SIZE(first) > 0) {
    first = item_of(first, 0);
  }
  const bool none = is_list(first);
  const bool numpys = is_numpy_scalar(first) || is_array(first);
  const bool text = PyUnicode_Check(first) || PyBytes_Check(first) ||
                    (numpys && ListElements(first).kind() == kText);
  nb::object array;
  try {
    // Arrays of bytes would lose trailing NULs.
    array = text ? numpy().attr("array")(nb::handle(o),
                                         "dtype"_a = numpy().attr("object_"))
                 : numpy().attr("asarray")(nb::handle(o));
  } catch (nb::python_error&) {
    throw NotThat("a tensor, or numbers in lists of equal lengths");
  }
  if (none) {
    if (to == string_) return strings_of(array);
    return tensor_of_array(array, to == DType::kInvalid ? float32 : to, true);
  }
  if (text) {
    const Tensor t = strings_of(array);
    if (asked && to != DType::kInvalid && to != string_) {
      throw NotThat(fmt::format("values of {}", name_of(to)));
    }
    return t;
  }
  if (to == uint64 && PyLong_CheckExact(first) &&
      ListElements(array).kind() == kReal) {
    // NumPy makes floats of numbers if one of them is above int64.
    const nb::object exact = numpy().attr("asarray")(
        nb::handle(o), "dtype"_a = numpy().attr("object_"));
    const nb::object made = converted(exact, uint64, true);
    if (nb::cast<bool>(numpy().attr("array_equal")(made, exact))) array = made;
  }
  const ListElements elements(array);
  const Kind kind = elements.kind();
  DType own = kind == kReal ? float32 : int32;
  const bool whole = PyLong_CheckExact(first) ||
                     (numpys && ListElements(first).kind() == kWhole);
  if (PyBool_Check(first)) own = bool_;
  if (PyFloat_CheckExact(first)) own = float32;
  if (PyComplex_CheckExact(first)) own = complex128;
  if (numpys && !whole) own = ListElements(first).dtype();
  if (is_complex(own)) own = complex128;
  if (to != DType::kInvalid && holds(to, kind)) own = to;
  if (!holds(own, kind)) {
    throw NotThat("numbers of one kind, or text, in lists of equal lengths");
  }
  if (asked && to != DType::kInvalid && own != to) {
    throw NotThat(
        fmt::format("values of {} (tf.cast changes dtypes)", name_of(to)));
  }
  if (own == float32 && elements.is("f8") &&
      is_wide<double>(array, -FLT_MAX, FLT_MAX)) {
    throw NotThat("numbers that float32 holds, or a wider dtype");
  }
  if (own == int32 && to != int32) {
    const bool is_unsigned = elements.is("u8") || elements.is("u4");
    if (is_unsigned) array = converted(array, int64, false);
    if ((is_unsigned || elements.is("i8")) &&
        is_wide<int64_t>(array, INT32_MIN, INT32_MAX)) {
      own = int64;
    }
  }
  return tensor_of_array(array, own, asked || own != to);
}

}  // namespace

// Not of a class that inherits from tf.Variable and never makes one.
static bool is_variable(PyObject* o) {
  return nb::isinstance<Variable>(o) && nb::inst_ready(o);
}

bool is_own(PyObject* o) { return nb::isinstance<Tensor>(o) || is_variable(o); }

bool is_tensor_like(PyObject* o) {
  return is_own(o) || (!PyType_Check(o) && is_array(o));
}

DType dtype_of_python(PyObject* o) {
  if (nb::isinstance<Tensor>(o))
    return nb::cast<const Tensor&>(nb::handle(o)).dtype();
  if (is_variable(o)) return nb::cast<const Variable&>(nb::handle(o)).dtype();
  if (nb::hasattr(nb::handle(o), "__berth_tensor__"))
    return tensor_of(o).dtype();
  return ListElements(o).dtype();
}

Tensor tensor_of(PyObject* o, DType to, bool asked) {
  if (nb::isinstance<Tensor>(o)) return nb::cast<const Tensor&>(nb::handle(o));
  if (is_variable(o)) {
    const auto& v = nb::cast<const Variable&>(nb::handle(o));
    if (tape_is_open()) note_read(v);
    return v.value({});
  }
  if (PyUnicode_Check(o) || PyBytes_Check(o)) {
    if (asked && to != DType::kInvalid && to != string_) {
      throw NotThat(fmt::format("a value of {}", name_of(to)));
    }
    return string_scalar(From<std::string>::get(o, {}));
  }
  if (PyBool_Check(o) || PyLong_Check(o) ||
      ((PyFloat_Check(o) || PyComplex_Check(o)) && !is_numpy_scalar(o))) {
    return scalar_of(o, to, asked);
  }
  if (o == Py_None) throw NotThat("a tensor");
  if (is_list(o) && holds_own(o)) {
    Tensors parts;
    DType own = to;
    for (const nb::object& item : items_of(o)) {
      if (own == DType::kInvalid && is_own(item.ptr())) {
        own = dtype_of_python(item.ptr());
      }
    }
    for (const nb::object& item : items_of(o)) {
      Tensor part = tensor_of(item.ptr(), own, asked);
      const bool other = asked && to != DType::kInvalid && part.dtype() != to;
      parts.push_back(other ? cast(part, to, site_of_caller()) : part);
    }
    return stack(parts, 0, site_of_caller());
  }
  if (nb::hasattr(nb::handle(o), "__berth_tensor__")) {
    return tensor_of(nb::handle(o).attr("__berth_tensor__")().ptr(), to, asked);
  }
  if (!is_array(o)) {
    // Rows of equal lengths, too, stay a RaggedTensor.
    if (!is_list(o) && !advice_of(o).kind.empty()) {
      throw NotThat("a tensor, or numbers in lists of equal lengths");
    }
    return tensor_of_lists(o, to, asked);
  }
  return tensor_of_array(numpy().attr("asarray")(nb::handle(o)), to, asked);
}

Tensors tensors_in(nb::handle list) {
  Tensors all;
  for (nb::handle t : list) all.push_back(tensor_of(t.ptr()));
  return all;
}

Tensor known(const Tensor& t) {
  if (!t.defined() || !t.is_symbolic()) return t;
  const Tensor value = known_value(t);
  return value.defined() ? value : t;
}

nb::object array_of(const Tensor& given) {
  const Tensor t = known(given);
  if (t.dtype() == string_) {
    std::vector<std::string> all;
    {
      const Free free;
      all = t.to_vector<std::string>();
    }
    nb::list list;
    for (const std::string& s : all) list.append(nb::bytes(s.data(), s.size()));
    nb::object flat =
        numpy().attr("array")(list, "dtype"_a = numpy().attr("object_"));
    nb::list dims;
    for (const int64_t d : t.shape()) dims.append(d);
    return flat.attr("reshape")(nb::tuple(dims));
  }
  nb::list dims;
  for (const int64_t d : t.shape()) dims.append(d);
  nb::object dtype = nb::cast(std::string(name_of(t.dtype())));
  if (t.dtype() == bfloat16) {
    dtype = nb::module_::import_("ml_dtypes").attr("bfloat16");
  }
  nb::object array = numpy().attr("empty")(nb::tuple(dims), dtype);
  Py_buffer view;
  nb::object bytes = array.attr("reshape")(-1).attr("view")("uint8");
  if (t.num_elements() > 0) {
    if (PyObject_GetBuffer(bytes.ptr(), &view, PyBUF_WRITABLE) != 0) {
      nb::raise_python_error();
    }
    const Site site = site_of_caller();
    try {
      const Free free;
      t.copy_to(view.buf, site);
    } catch (...) {
      PyBuffer_Release(&view);
      throw;
    }
    PyBuffer_Release(&view);
  } else {
    t.shape();
  }
  return array;
}

}  // namespace berth::python
