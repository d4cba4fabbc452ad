// The user's Python line behind a call.

// The frames of CPython 3.11, the one version of the package, as they are: a
// frame object would be made and thrown away for each op.
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

#include <array>
#include <string>
#include <unordered_set>

#include "classes.h"
#include "convert.h"
#include "device/device_manager.h"

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

const Known& known(const _PyInterpreterFrame* frame) {
  static auto& table = *new std::array<Known, 1024>();
  PyCodeObject* code = frame->f_code;
  const int last =
      _PyInterpreterFrame_LASTI(frame) * static_cast<int>(sizeof(_Py_CODEUNIT));
  Known& k = table[(reinterpret_cast<uintptr_t>(code) / 16 +
                    static_cast<uintptr_t>(last) * 7) %
                   table.size()];
  if (k.code == code && k.last == last) return k;
  Py_INCREF(code);
  Py_XDECREF(k.code);
  const char* file = interned(code->co_filename);
  const std::string& own = package_folder();
  k.code = code;
  k.last = last;
  k.own = !own.empty() && std::string_view(file).starts_with(own);
  k.site.file = file;
  k.site.line = PyCode_Addr2Line(code, last);
  k.site.frame = interned(code->co_name);
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
  const _PyInterpreterFrame* frame = PyThreadState_Get()->cframe->current_frame;
  for (; frame != nullptr; frame = frame->previous) {
    if (_PyFrame_IsIncomplete(const_cast<_PyInterpreterFrame*>(frame)))
      continue;
    const Known& k = known(frame);
    if (!k.own) return k.site;
  }
  return {};
}

void add_site(nb::module_& m) {
  m.def("_after_fork_in_child", [] {
    if (DeviceManager::initialised()) strand();
  });
  m.def("_begin_to_end", &begin_to_end);
  m.def("_set_package_folder",
        [](nb::str folder) { package_folder() = folder.c_str(); });
}

}  // namespace berth::python
