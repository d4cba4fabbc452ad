// What users add from Python: gradient rules, ops that call Python, and
// libraries of ops (custom_op.h).

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

#include "base/timeline.h"
#include "berth/custom_gradient.h"
#include "berth/custom_op.h"
#include "berth/debugging.h"
#include "berth/debugging_dump.h"
#include "classes.h"
#include "convert.h"
#include "errors.h"
#include "held.h"
#include "op/dispatcher.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

Tensors tensors_or_empty(nb::handle list) {
  Tensors all;
  for (nb::handle t : list) {
    all.push_back(t.is_none() ? Tensor() : tensor_of(t.ptr()));
  }
  return all;
}

// fn(tensors) -> (results, rule); rule(dy) -> a gradient or None for each.
nb::object call_with_gradient(nb::object fn, nb::list x) {
  const Tensors in = tensors_or_empty(x);
  const Held held_fn = held(std::move(fn));
  const Site site = site_of_caller();
  Tensors out;
  {
    const Free free;
    out = custom_gradient(
        [&](const Tensors& args) {
          const Gil gil;
          const nb::tuple made =
              nb::cast<nb::tuple>((*held_fn)(to_python(args)));
          const Held rule = held(nb::borrow(made[1]));
          return WithGradient{tensors_or_empty(made[0]),
                              [rule](const Tensors& dy) {
                                const Gil inner;
                                return tensors_or_empty((*rule)(to_python(dy)));
                              }};
        },
        in, site);
  }
  return to_python(out);
}

// run(token, backward, tensors) -> tensors, of berth/_host.py.
nb::object& runner() {
  static auto* held = new nb::object();
  return *held;
}

Tensor copied(const View& v) {
  const size_t bytes = static_cast<size_t>(v.size()) * size_of(v.dtype);
  if (bytes == 0) return zeros(*v.shape, v.dtype, {});
  char* copy = new char[bytes];
  std::memcpy(copy, v.data, bytes);
  return wrap_memory(copy, *v.shape, v.dtype, [copy] { delete[] copy; });
}

// The kernel: on the host, with the GIL.
void call_python(const KernelCall& call) {
  const DispatchGuard outside(nullptr);
  const timeline::MaybeSpan span("python", "py_function", "python");
  const Gil gil;
  try {
    Tensors in;
    for (int i = 0; i < call.num_in; ++i) in.push_back(copied(call.in[i]));
    nb::object results =
        runner()(call.attr<int64_t>("token"), call.attr<int64_t>("backward"),
                 to_python(in));
    int i = 0;
    for (nb::handle result : results) {
      const Tensor t = tensor_of(result.ptr());
      const View& out = call.out[i++];
      if (t.dtype() != out.dtype || t.shape() != *out.shape) {
        throw errors::InvalidArgument(fmt::format(
            "py_function: the function returned {}{}; expected {}{}, as Tout "
            "says",
            name_of(t.dtype()), t.shape().str(), name_of(out.dtype),
            out.shape->str()));
      }
      if (t.num_elements() > 0) t.copy_to(out.data, {});
    }
  } catch (nb::python_error& e) {
    raise_in_engine(e, errors::Code::kInvalidArgument);
  }
}

// The outputs of the gradient: those inputs of the call that have one.
template <class Visit>
void each_inexact(int64_t count, const Visit& dtype_at, std::vector<int>* at) {
  for (int i = 0; i < count; ++i) {
    if (is_inexact(dtype_at(i))) at->push_back(i);
  }
}

void infer_python(InferContext& c) {
  const int64_t backward = c.attr<int64_t>("backward");
  if (backward > 0) {
    std::vector<int> at;
    each_inexact(
        backward, [&](int i) { return c.dtype(i); }, &at);
    for (int o = 0; o < c.num_outputs(); ++o) {
      c.set_output(o, c.dtype(at[o]), c.shape(at[o]));
    }
    return;
  }
  // Per output: dtype, rank, dimensions.
  const auto& specs = c.attr<std::vector<int64_t>>("specs");
  size_t next = 0;
  for (int o = 0; o < c.num_outputs(); ++o) {
    const auto dtype = static_cast<DType>(specs.at(next));
    const auto rank = static_cast<size_t>(specs.at(next + 1));
    const auto first = specs.begin() + static_cast<std::ptrdiff_t>(next) + 2;
    c.set_output(o, dtype, Shape(std::vector<int64_t>(first, first + rank)));
    next += 2 + rank;
  }
}

Tensors gradient_of_python(const GradCall& g) {
  if (g.attr<int64_t>("differentiable") == 0) {
    return Tensors(static_cast<size_t>(g.num_inputs()));
  }
  std::vector<int> at;
  each_inexact(
      g.num_inputs(), [&](int i) { return g.x(i).dtype(); }, &at);
  Tensors in, by_input(static_cast<size_t>(g.num_inputs()));
  if (at.empty()) return by_input;
  for (int i = 0; i < g.num_inputs(); ++i) in.push_back(g.x(i));
  const auto outputs = static_cast<int>(g.attr<int64_t>("outputs"));
  for (int i = 0; i < outputs; ++i) {
    if (is_inexact(g.y(i).dtype())) in.push_back(g.dy(i));
  }
  const Tensors found = call_op("PyFunction", in,
                                {{"token", g.attr<int64_t>("token")},
                                 {"backward", int64_t{g.num_inputs()}},
                                 {"outputs", static_cast<int64_t>(at.size())}});
  for (size_t k = 0; k < at.size(); ++k) by_input[at[k]] = found[k];
  return by_input;
}

void register_python_op() {
  constexpr DTypeSet kOnHost = kAnyType & ~kResourceType & ~kStringType;
  register_op("PyFunction")
      .any_inputs("x", kOnHost)
      .num_outputs([](const OpDef& op, const Attrs* attrs) {
        return static_cast<int>(op.attr<int64_t>(attrs, "outputs"));
      })
      .attr("token", int64_t{0})
      .attr("backward", int64_t{0})  // how many inputs the call had
      .attr("differentiable", int64_t{0})
      .attr("outputs", int64_t{0})
      .attr("specs", std::vector<int64_t>())
      .stateful()
      .infer(&infer_python)
      .gradient(&gradient_of_python)
      .doc("Calls a function of Python on the host.");
  register_kernels("CPU", [](KernelTable& table) {
    table.direct("PyFunction", kEveryType, &call_python, "python");
  });
}

AttrValue attr_of(nb::handle value, const AttrValue& like) {
  PyObject* o = value.ptr();
  return std::visit(
      [&](const auto& v) -> AttrValue {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::shared_ptr<Callable>>) {
          throw NotThat("something that Python can give");
        } else {
          return From<T>::get(o, {});
        }
      },
      like);
}

nb::object call_named(const std::string& name, nb::list inputs,
                      nb::dict given) {
  const OpDef& op = OpRegistry::get().lookup(name);
  std::vector<Attrs::Pair> attrs;
  for (auto [key, value] : given) {
    const auto attr = nb::cast<std::string>(key);
    for (const AttrDef& a : op.attrs()) {
      if (a.name == attr) {
        attrs.emplace_back(attr, attr_of(value, a.default_value));
      }
    }
  }
  const Tensors in = tensors_or_empty(inputs);
  const Site site = site_of_caller();
  Tensors out;
  {
    const Free free;
    out = call_op(name, in, std::move(attrs), site);
  }
  return to_python(out);
}

// Python loads the engine for the extension module alone; libraries of ops see
// it from here on.
void show_engine() {
  Dl_info engine;
  if (dladdr(reinterpret_cast<void*>(&register_op), &engine) != 0) {
    dlopen(engine.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  }
}

void load_library(const std::string& path) {
  show_engine();
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
  const char* why = dlerror();
  throw errors::NotFound(fmt::format("load_op_library: \"{}\": {}", path,
                                     why ? why : "cannot be loaded"));
}

}  // namespace

void add_custom(nb::module_& m) {
  register_python_op();
  m.def("call_with_gradient", &call_with_gradient);
  m.def("set_host_runner", [](nb::object fn) { runner() = std::move(fn); });
  m.def("call_op", &call_named);
  m.def("load_library", &load_library);
  m.def("enable_check_numerics", &debugging::enable_check_numerics);
  m.def("disable_check_numerics", &debugging::disable_check_numerics);
  m.def("enable_dump_debug_info",
        [](const std::string& root, const std::string& mode, int64_t size,
           const std::string& regex) {
          debugging::enable_dump_debug_info(root, {.tensor_debug_mode = mode,
                                                   .circular_buffer_size = size,
                                                   .op_regex = regex});
        });
  m.def("flush_dump_debug_info", &debugging::flush_dump_debug_info);
  m.def("disable_dump_debug_info", &debugging::disable_dump_debug_info);
  m.def("set_log_device_placement", &debugging::set_log_device_placement);
  m.def("get_log_device_placement", &debugging::get_log_device_placement);
  m.def("diagnostic_counts", &debugging::diagnostic_counts);
  m.def("op_names", [] {
    std::vector<std::string> names;
    for (const OpDef* op : OpRegistry::get().all()) names.push_back(op->name());
    return names;
  });
  // (names of inputs, of attributes, number of outputs, text)
  m.def("op_schema", [](const std::string& name) {
    const OpDef& op = OpRegistry::get().lookup(name);
    std::vector<std::string> inputs, attrs;
    for (const ArgDef& a : op.inputs()) inputs.push_back(a.name);
    for (const AttrDef& a : op.attrs()) attrs.push_back(a.name);
    return nb::make_tuple(inputs, attrs, op.outputs().size(), op.doc());
  });
  m.def("dtype_number", [](nb::handle d) {
    return static_cast<int>(From<DType>::get(d.ptr(), {}));
  });
}

}  // namespace berth::python
