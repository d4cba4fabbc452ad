// Memory that tensors share with arrays: the buffer protocol, DLPack, NumPy.
//
// Nobody may write what a tensor holds, so all that is given out is read-only,
// as far as the protocol can say that. What comes in by from_dlpack() is shared
// because it was asked for.

#include "sharing.h"

#include <nanobind/ndarray.h>

#include "device/device_manager.h"
#include "held.h"
#include "tensor/tensor_impl.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

// The tensor with bytes that the host reads where they are and nobody writes:
// itself, or a copy of what is on another device or in a variable.
Tensor on_host(const Tensor& t) {
  Tensor own = own_copy(t, DeviceManager::get().host());
  synchronize(own.impl()->block->ready);
  return own;
}

nb::dlpack::dtype dlpack_dtype(DType d) {
  using Code = nb::dlpack::dtype_code;
  const Code code = d == bool_       ? Code::Bool
                    : d == bfloat16  ? Code::Bfloat
                    : is_unsigned(d) ? Code::UInt
                    : is_complex(d)  ? Code::Complex
                    : is_integer(d)  ? Code::Int
                                     : Code::Float;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * size_of(d)), 1};
}

DType dtype_of(nb::dlpack::dtype d) {
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto one = static_cast<DType>(i);
    if (size_of(one) > 0 && dlpack_dtype(one) == d) return one;
  }
  throw nb::type_error(
      "from_dlpack: Berth has no such dtype; expected float16, float32, "
      "float64, bfloat16, whole numbers of 8 to 64 bits, bool, complex64 or "
      "complex128");
}

std::vector<size_t> dims_of(const Tensor& t) {
  std::vector<size_t> dims;
  for (const int64_t d : t.shape()) dims.push_back(static_cast<size_t>(d));
  return dims;
}

// A capsule that keeps the tensor.
nb::capsule owner_of(const Tensor& t) {
  return nb::capsule(new Tensor(t), [](void* p) noexcept {
    std::default_delete<Tensor>()(static_cast<Tensor*>(p));
  });
}

template <class Array>
nb::object array_over(const Tensor& t, nb::dlpack::dtype dtype) {
  Tensor own;
  {
    const Free free;
    own = on_host(t);
  }
  const auto dims = dims_of(own);
  return nb::cast(Array(own.impl()->data(), dims.size(), dims.data(),
                        owner_of(own), nullptr, dtype, nb::device::cpu::value));
}

bool has_bytes(const Tensor& t) {
  return !t.is_symbolic() && t.dtype() != string_ && t.num_elements() > 0;
}

// NumPy's array over the memory of the tensor.
nb::object view_of(const Tensor& t) {
  if (!has_bytes(t)) return array_of(t);
  const bool brain = t.dtype() == bfloat16;  // which NumPy does not know
  nb::object array = array_over<nb::ndarray<nb::numpy, nb::ro>>(
      t, brain ? nb::dtype<uint16_t>() : dlpack_dtype(t.dtype()));
  if (!brain) return array;
  return array.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
}

// An object that speaks DLPack. Consumers of a version before 1.0 cannot be
// told that the memory is read-only.
nb::object exported(const Tensor& t, bool read_only) {
  if (t.is_symbolic() || t.dtype() == string_) {
    throw nb::type_error(
        "__dlpack__: only the numbers of a computed tensor can be shared");
  }
  const auto dtype = dlpack_dtype(t.dtype());
  if (read_only) {
    return array_over<nb::ndarray<nb::array_api, nb::ro>>(t, dtype);
  }
  return array_over<nb::ndarray<nb::array_api>>(t, dtype);
}

Tensor from_dlpack(nb::handle value) {
  nb::ndarray<nb::ro> in;
  if (!nb::try_cast(value, in)) {
    throw nb::type_error(
        "from_dlpack: expected an array with __dlpack__ (NumPy, PyTorch, JAX, "
        "CuPy) in memory of the host, or a capsule of one");
  }
  const DType dtype = dtype_of(in.dtype());
  std::vector<int64_t> dims;
  bool packed = true;
  int64_t next = 1;
  for (size_t i = in.ndim(); i-- > 0;) {
    const auto d = static_cast<int64_t>(in.shape(i));
    packed = packed && (d == 1 || in.stride(i) == next);
    next *= d;
    dims.insert(dims.begin(), d);
  }
  if (next == 0) return zeros(Shape(dims), dtype, {});
  if (!packed) {
    if (dtype == bfloat16) {
      throw nb::value_error(
          "from_dlpack: the bfloat16 array is not contiguous; make it so first "
          "(in PyTorch: x.contiguous())");
    }
    return tensor_of(nb::cast(nb::ndarray<nb::numpy, nb::ro>(in)).ptr());
  }
  auto* kept = new nb::ndarray<nb::ro>(std::move(in));
  return wrap_memory(const_cast<void*>(kept->data()), Shape(dims), dtype,
                     [kept] {
                       if (const Gil gil{std::nothrow}) delete kept;
                     });
}

const char* format_of(DType d) {
  switch (d) {
    case float16:
      return "e";
    case float32:
      return "f";
    case float64:
      return "d";
    case int8:
      return "b";
    case uint8:
      return "B";
    case int16:
      return "h";
    case uint16:
      return "H";
    case uint32:
      return "I";
    case uint64:
      return "L";
    case int32:
      return "i";
    case int64:
      return "l";
    case bool_:
      return "?";
    case complex64:
      return "Zf";
    case complex128:
      return "Zd";
    default:
      return nullptr;
  }
}

struct Exported {
  Tensor tensor;
  std::vector<Py_ssize_t> dims, strides;
};

int refuse(const char* why) {
  PyErr_SetString(PyExc_BufferError, why);
  return -1;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  const Tensor& t = *nb::inst_ptr<Tensor>(self);
  if (!has_bytes(t) || format_of(t.dtype()) == nullptr) {
    return refuse("only computed numbers have a buffer (and no bfloat16)");
  }
  if ((flags & PyBUF_WRITABLE) != 0) {
    return refuse("a tensor never changes: its buffer is read-only");
  }
  const bool by_columns =
      (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && t.rank() > 1;
  if (by_columns)
    return refuse("the elements of a tensor are in row-major order");
  auto made = std::make_unique<Exported>();
  try {
    const Free free;
    made->tensor = on_host(t);
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
  Py_ssize_t stride = static_cast<Py_ssize_t>(size_of(t.dtype()));
  for (const int64_t d : t.shape()) made->dims.push_back(d);
  made->strides.resize(made->dims.size());
  for (size_t i = made->dims.size(); i-- > 0; stride *= made->dims[i]) {
    made->strides[i] = stride;
  }
  view->buf = made->tensor.impl()->data();
  view->len = stride;
  view->readonly = 1;
  view->itemsize = static_cast<Py_ssize_t>(size_of(t.dtype()));
  view->format = (flags & PyBUF_FORMAT)
                     ? const_cast<char*>(format_of(t.dtype()))
                     : nullptr;
  view->ndim = t.rank();
  view->shape = (flags & PyBUF_ND) ? made->dims.data() : nullptr;
  view->strides =
      (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? made->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = made.release();
  view->obj = nb::borrow(self).release().ptr();
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) {
  std::default_delete<Exported>()(static_cast<Exported*>(view->internal));
}

PyType_Slot g_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
    {0, nullptr}};

bool is_of(nb::handle o, const char* package) {
  const nb::object module = nb::getattr(o.type(), "__module__", nb::none());
  return nb::isinstance<nb::str>(module) &&
         std::string_view(nb::str(module).c_str()).starts_with(package);
}

}  // namespace

PyType_Slot* buffer_slots() { return g_slots; }

bool nobody_writes(nb::handle array) {
  nb::object at = nb::borrow(array);
  while (nb::hasattr(at, "flags") && nb::hasattr(at, "base")) {
    if (nb::cast<bool>(at.attr("flags").attr("writeable"))) return false;
    at = at.attr("base");
  }
  if (PyMemoryView_Check(at.ptr())) {
    if (!nb::cast<bool>(at.attr("readonly"))) return false;
    at = at.attr("obj");
  }
  // The owner of an array can make it writable again; these cannot.
  return PyBytes_Check(at.ptr()) || nb::isinstance<Tensor>(at) ||
         is_of(at, "jaxlib");
}

void add_sharing(nb::module_& m) {
  m.def("view", [](const Tensor& t) { return view_of(t); });
  m.def("exported", &exported, "tensor"_a, "read_only"_a);
  m.def("from_dlpack", &from_dlpack, "value"_a);
}

}  // namespace berth::python
