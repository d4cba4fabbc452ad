// The extension module berth._core.

#include "arguments.h"
#include "classes.h"
#include "errors.h"

NB_MODULE(_core, m) {
  using namespace berth::python;  // NOLINT
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    throw nanobind::import_error(
        "berth works in the main interpreter alone, not in sub-interpreters; "
        "use threads or processes");
  }
  m.doc() = "The engine of Berth as an extension module of Python.";
  nanobind::set_leak_warnings(false);
  add_errors(m);
  add_site(m);
  add_tensor(m);
  add_gradient(m);
  add_function(m);
  add_config(m);
  add_keras(m);
  add_data(m);
  add_examples(m);
  add_folders(m);
  add_distribute(m);
  add_cluster(m);
  add_parameter_server(m);
  add_elastic(m);
  add_custom(m);
  add_train(m);
  add_keras_files(m);
  add_placement(m);
  add_profiler(m);
  add_network(m);
  add_output(m);
  add_sharing(m);
  nanobind::module_ ops = m.def_submodule("ops");
  add_functions(ops);
}
