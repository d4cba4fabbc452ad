// classes: what the parts of the extension module add to it.

#ifndef BERTH_PYTHON_CLASSES_H_
#define BERTH_PYTHON_CLASSES_H_

#include <nanobind/nanobind.h>

namespace berth::python {

void add_tensor(nanobind::module_& m);    // Tensor, Variable, DType, Shape
void add_site(nanobind::module_& m);      // whose lines are the package's own
void add_gradient(nanobind::module_& m);  // GradientTape, device
void add_function(nanobind::module_& m);  // traced functions, cond, loops
void add_config(nanobind::module_& m);    // tf.config
void add_keras(nanobind::module_& m);     // layers, models and their parts
void add_layers(nanobind::module_& m);
void add_models(nanobind::module_& m);
void add_keras_files(nanobind::module_& m);  // these as JSON
void add_data(nanobind::module_& m);         // data sets
void add_files(nanobind::module_& m);
void add_datasets(nanobind::module_& m);
void add_folders(nanobind::module_& m);     // data sets of folders
void add_examples(nanobind::module_& m);    // tf.train.Example, TFRecord
void add_distribute(nanobind::module_& m);  // strategies
void add_custom(nanobind::module_& m);      // gradients and ops of Python's
void add_train(nanobind::module_& m);       // checkpoints
void add_placement(nanobind::module_& m);   // contracts
void add_profiler(nanobind::module_& m);    // timelines and event files
void add_network(nanobind::module_& m);     // downloads by Python
void add_output(nanobind::module_& m);      // what is printed, by sys.stdout
void add_sharing(nanobind::module_& m);     // memory shared with arrays
void add_cluster(nanobind::module_& m);     // which processes there are

void add_parameter_server(nanobind::module_& m);
void add_elastic(nanobind::module_& m);  // fits that elastic() keeps

}  // namespace berth::python

#endif  // BERTH_PYTHON_CLASSES_H_
