// The user's Python line behind a call.

#include <Python.h>
#include <frameobject.h>

#include <array>
#include <mutex>
#include <string>
#include <unordered_set>

#include "classes.h"
#include "convert.h"

namespace berth::python {

namespace {

// The folder of the package: its own lines are not the user's.
std::string& package_folder() {
  static auto& folder = *new std::string();
  return folder;
}

// Names of files and functions live for ever: sites point to them.
const char* interned(PyObject* text) {
  static auto& all = *new std::unordered_set<std::string>();
  const char* s = PyUnicode_AsUTF8(text);
  if (s == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return all.insert(s).first->c_str();
}

// Lines that were looked up, by code object and place in it. The code is held,
// so that its address stays its own.
struct Known {
  PyCodeObject* code = nullptr;
  int last = -1;
  bool own = false;
  Site site;
};

const Known& known(PyFrameObject* frame) {
  static auto& table = *new std::array<Known, 1024>();
  PyCodeObject* code = PyFrame_GetCode(frame);  // a new reference
  const int last = PyFrame_GetLasti(frame);
  Known& k = table[(reinterpret_cast<uintptr_t>(code) / 16 +
                    static_cast<uintptr_t>(last) * 7) %
                   table.size()];
  if (k.code == code && k.last == last) {
    Py_DECREF(code);
    return k;
  }
  Py_XDECREF(k.code);
  const char* file = interned(code->co_filename);
  const std::string& own = package_folder();
  k.code = code;
  k.last = last;
  k.own = !own.empty() && std::string_view(file).starts_with(own);
  k.site.file = file;
  k.site.line = PyFrame_GetLineNumber(frame);
  k.site.frame = interned(code->co_name);
  return k;
}

}  // namespace

Site site_of_caller() {
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  if (frame == nullptr) return {};
  Py_INCREF(frame);
  Site site;
  while (frame != nullptr) {
    const Known& k = known(frame);
    if (!k.own) {
      site = k.site;
      break;
    }
    PyFrameObject* back = PyFrame_GetBack(frame);  // a new reference
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return site;
}

void add_site(nb::module_& m) {
  m.def("_set_package_folder",
        [](nb::str folder) { package_folder() = folder.c_str(); });
}

}  // namespace berth::python
