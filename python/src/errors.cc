#include "errors.h"

#include <signal.h>
#include <unistd.h>

#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/needs_values.h"
#include "convert.h"
#include "gil.h"

namespace berth::python {

namespace nb = nanobind;

namespace {

struct Class {
  errors::Code code;
  const char* name;
  PyObject** also;  // a class of Python that it is as well
};
const Class kClasses[] = {
    {errors::Code::kCancelled, "CancelledError", nullptr},
    {errors::Code::kUnknown, "UnknownError", nullptr},
    {errors::Code::kInvalidArgument, "InvalidArgumentError", &PyExc_ValueError},
    {errors::Code::kDeadlineExceeded, "DeadlineExceededError", nullptr},
    {errors::Code::kNotFound, "NotFoundError", nullptr},
    {errors::Code::kAlreadyExists, "AlreadyExistsError", nullptr},
    {errors::Code::kPermissionDenied, "PermissionDeniedError", nullptr},
    {errors::Code::kResourceExhausted, "ResourceExhaustedError",
     &PyExc_MemoryError},
    {errors::Code::kFailedPrecondition, "FailedPreconditionError",
     &PyExc_RuntimeError},
    {errors::Code::kAborted, "AbortedError", nullptr},
    {errors::Code::kOutOfRange, "OutOfRangeError", &PyExc_IndexError},
    {errors::Code::kUnimplemented, "UnimplementedError",
     &PyExc_NotImplementedError},
    {errors::Code::kInternal, "InternalError", nullptr},
    {errors::Code::kUnavailable, "UnavailableError", nullptr},
    {errors::Code::kDataLoss, "DataLossError", nullptr},
};

std::map<errors::Code, PyObject*>& classes() {
  static auto& all = *new std::map<errors::Code, PyObject*>();
  return all;
}

// The engine's advice is C++: `model.compile({.loss = ...})`, `math::cast`.
std::string in_python_words(std::string text) {
  static const auto& kRules = *new std::vector<
      std::pair<std::regex, const char*>>{
      {std::regex(R"(([{ ])\.(\w+) = )"), "$1$2="},  // of options
      {std::regex(R"(\{([a-z_]+=[^{}]*)\})"), "$1"},
      {std::regex(R"(\b(keras|distribute|data|config|debugging|train)::)"),
       "tf.$1."},
      {std::regex(R"(\bprofiler::)"), "tf.profiler.experimental."},
      {std::regex(R"(\b(math|nn|random|linalg|strings)::)"), "tf.$1."},
      {std::regex(R"((tf[\w.]*)::)"), "$1."},
      {std::regex(R"(\btf\.math\.cast\b)"), "tf.cast"},
      {std::regex(R"((tf\.cast\([^()]*, )(\w+\)))"), "$1tf.$2"},
      {std::regex(R"(Aggregation::kSum\b)"), "Aggregation.SUM"},
      {std::regex(R"(\bkMean\b)"), "MEAN"},
      {std::regex(R"(\bkOnlyFirstReplica\b)"), "ONLY_FIRST_REPLICA"},
      {std::regex(R"(Synchronization::kOnRead\b)"), "Synchronization.ON_READ"},
      {std::regex(R"((\W)(Variable(Aggregation|Synchronization)\.))"),
       "$1tf.$2"},
      {std::regex(R"(\b\w+::k([A-Z]\w*))"), "$1"},
      {std::regex(R"(\b(item|to_vector|copy_to) inside)"),
       "a value is read inside"},
      {std::regex(R"(\bitem: the tensor has)"),
       "a number is wanted, but the tensor has"},
      {std::regex(R"(; use to_vector, or reduce it first)"),
       "; reduce it first, or take all of it by numpy()"},
      {std::regex(R"(\bto_vector of a tensor of strings)"),
       "numbers are wanted of a tensor of strings"},
      {std::regex(
           R"(; expected numbers: read text with to_vector<std::string>\(\))"),
       ""},
      {std::regex(R"( \(\w+\.(cc|h):\d+\))"),
       ""}};                             // lines of the engine's own
  if (text.size() > 20000) return text;  // std::regex takes stack for each
  for (const auto& [pattern, with] : kRules) {
    text = std::regex_replace(text, pattern, with);
  }
  return text;
}

// An exception that ends the program, not a call: it goes on where Python is
// reached again, whatever the engine did meanwhile. Under the GIL.
PyObject* g_kept = nullptr;

// Raises it on the thread of signal handlers, or where the engine gave up.
int raise_kept(void* = nullptr) {
  if (g_kept == nullptr) return 0;
  clear_interrupt();
  PyObject* kept = std::exchange(g_kept, nullptr);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(kept)), kept);
  Py_DECREF(kept);
  return -1;
}

void keep(nb::handle exception) {
  if (g_kept != nullptr) return;
  g_kept = exception.inc_ref().ptr();
  Py_AddPendingCall(&raise_kept, nullptr);
}

// True at Ctrl-C, on the main thread. Handlers of the user's may call the
// engine: they run when it has returned.
bool interrupted() noexcept {
  if (gettid() != getpid()) return false;
  const Gil gil{std::nothrow};
  if (!gil) return false;
  try {
    const nb::object signals = nb::module_::import_("_signal");
    if (!signals.attr("getsignal")(SIGINT).is(
            signals.attr("default_int_handler")) ||
        PyOS_InterruptOccurred() == 0) {
      return false;
    }
    keep(nb::handle(PyExc_KeyboardInterrupt)());
    return true;
  } catch (nb::python_error&) {
    return false;
  }
}

}  // namespace

void raise_in_engine(nb::python_error& e, errors::Code code) {
  const auto is = [&](PyObject* c) { return e.matches(c); };
  const auto type = nb::cast<std::string>(e.type().attr("__name__"));
  if (!is(PyExc_Exception)) {
    keep(e.value());
    throw errors::Cancelled(type);
  }
  if (is(PyExc_ValueError) || is(PyExc_TypeError)) {
    code = errors::Code::kInvalidArgument;
  }
  for (const auto& [known, own] : classes()) {
    if (is(own)) code = known;  // an error of the engine stays what it is
  }
  errors::raise(code, type + ": " + nb::cast<std::string>(nb::str(e.value())));
}

bool is_error(const nb::python_error& e, errors::Code code) {
  const auto at = classes().find(code);
  return at != classes().end() && e.matches(at->second);
}

void set_python_error(const errors::Error& e) {
  // What Python code threw inside a call of the engine goes on as it was.
  if (PyErr_Occurred()) return;
  if (e.code() == errors::Code::kCancelled && raise_kept() != 0) return;
  const auto at = classes().find(e.code());
  // A text may quote bytes of the user's that are not UTF-8.
  const std::string text = in_python_words(e.what());
  const nb::object shown = nb::steal(PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  const nb::handle type(at == classes().end() ? PyExc_RuntimeError
                                              : at->second);
  const nb::object made = type(shown);
  // The caller may call the function op by op instead (_function.py).
  if (dynamic_cast<const NeedsValues*>(&e)) made.attr("needs_values") = true;
  PyErr_SetObject(type.ptr(), made.ptr());
}

void add_errors(nb::module_& m) {
  nb::object base = nb::steal(
      PyErr_NewException("berth.errors.OpError", PyExc_Exception, nullptr));
  m.attr("OpError") = base;
  for (const Class& c : kClasses) {
    nb::object bases = c.also ? nb::make_tuple(base, nb::handle(*c.also))
                              : nb::make_tuple(base);
    const std::string name = std::string("berth.errors.") + c.name;
    PyObject* made = PyErr_NewException(name.c_str(), bases.ptr(), nullptr);
    if (made == nullptr) nb::raise_python_error();
    m.attr(c.name) = nb::handle(made);
    classes()[c.code] = made;
  }
  set_interrupt_ask(&interrupted);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const errors::Error& e) {
      set_python_error(e);
    } catch (const NotThat& e) {
      PyErr_SetString(PyExc_TypeError,
                      ("expected " + std::string(e.what())).c_str());
    }
  });
}

}  // namespace berth::python
