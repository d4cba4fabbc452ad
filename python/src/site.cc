// The user's Python line behind a call.

// The frames of CPython 3.11 are read as they are, since it costs an op 70 ns
// to ask for them; the stable ABI of later versions has no other way.
#ifndef Py_LIMITED_API
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

#include <array>
#include <string>
#include <unordered_set>
#include <vector>

#include "classes.h"
#include "convert.h"
#include "device/device_manager.h"

namespace berth::python {

namespace {

// Folders of packages whose lines are not the user's: this one, and Keras.
std::vector<std::string>& package_folders() {
  static auto& folders = *new std::vector<std::string>();
  return folders;
}

// Names of files and functions live for ever: sites point to them.
const char* interned(PyObject* text) {
  static auto& all = *new std::unordered_set<std::string>();
  const char* s = PyUnicode_AsUTF8AndSize(text, nullptr);
  if (s == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return all.insert(s).first->c_str();
}

#ifdef Py_LIMITED_API
class Frame {
 public:
  Frame()
      : Frame(nb::steal(reinterpret_cast<PyObject*>(
            PyThreadState_GetFrame(PyThreadState_Get())))) {}

  explicit operator bool() const { return code_.is_valid(); }
  PyObject* code() const { return code_.ptr(); }
  int last() const {
    static PyObject* name = PyUnicode_InternFromString("f_lasti");
    return static_cast<int>(PyLong_AsLong(attribute(name).ptr()));
  }
  int line() const { return PyFrame_GetLineNumber(at()); }
  void up() {
    static PyObject* name = PyUnicode_InternFromString("f_back");
    *this = Frame(attribute(name));
  }

 private:
  explicit Frame(nb::object frame) : frame_(std::move(frame)) {
    if (frame_.is_valid() && !frame_.is_none()) {
      code_ = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(at())));
    }
  }
  PyFrameObject* at() const {
    return reinterpret_cast<PyFrameObject*>(frame_.ptr());
  }
  nb::object attribute(PyObject* name) const {
    return nb::steal(PyObject_GetAttr(frame_.ptr(), name));
  }

  nb::object frame_, code_;
};
#else
class Frame {
 public:
  Frame() : at_(PyThreadState_Get()->cframe->current_frame) { skip(); }

  explicit operator bool() const { return at_ != nullptr; }
  PyObject* code() const { return reinterpret_cast<PyObject*>(at_->f_code); }
  int last() const {
    return _PyInterpreterFrame_LASTI(at_) *
           static_cast<int>(sizeof(_Py_CODEUNIT));
  }
  int line() const { return PyCode_Addr2Line(at_->f_code, last()); }
  void up() {
    at_ = at_->previous;
    skip();
  }

 private:
  void skip() {
    while (at_ != nullptr && _PyFrame_IsIncomplete(at_)) at_ = at_->previous;
  }

  _PyInterpreterFrame* at_;
};
#endif

// Lines that were looked up, by code object and place in it. The code is held,
// so that its address stays its own.
struct Known {
  nb::object code;
  int last = -1;
  bool own = false;
  Site site;
};

const Known& known_place(const Frame& frame) {
  static auto& table = *new std::array<Known, 1024>();
  PyObject* const code = frame.code();
  const int last = frame.last();
  Known& k = table[(reinterpret_cast<uintptr_t>(code) / 16 +
                    static_cast<uintptr_t>(last) * 7) %
                   table.size()];
  if (k.code.ptr() == code && k.last == last) return k;
  k.code = nb::borrow(code);
  const char* file = interned(nb::object(k.code.attr("co_filename")).ptr());
  k.last = last;
  k.own = false;
  for (const std::string& folder : package_folders()) {
    k.own = k.own || std::string_view(file).starts_with(folder);
  }
  k.site.file = file;
  k.site.line = frame.line();
  k.site.frame = interned(nb::object(k.code.attr("co_name")).ptr());
  return k;
}

}  // namespace

Site site_of_caller() {
  if (is_stranded()) [[unlikely]] {
    throw errors::FailedPrecondition(
        "this process was forked after Berth had made its devices, whose "
        "threads stay with the parent; start processes by "
        "multiprocessing.get_context(\"spawn\"), or compute nothing before "
        "the fork");
  }
  for (Frame frame; frame; frame.up()) {
    const Known& k = known_place(frame);
    if (!k.own) return k.site;
  }
  return {};
}

void add_site(nb::module_& m) {
  m.def("_after_fork_in_child", [] {
    if (DeviceManager::initialised()) strand();
  });
  m.def("_begin_to_end", &begin_to_end);
  m.def("_add_package_folder",
        [](nb::str folder) { package_folders().emplace_back(folder.c_str()); });
}

}  // namespace berth::python
