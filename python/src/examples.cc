// tf.train.Example messages and TFRecord files (berth/_io.py).

#include "berth/io.h"
#include "classes.h"
#include "convert.h"
#include "held.h"

BERTH_PYTHON_HANDLE(berth::io::TFRecordWriter, true)

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

// (kind, dtype, shape, default or None)
io::Feature feature_of(nb::handle row) {
  const auto kind = nb::cast<std::string>(row[1]);
  const DType dtype = From<DType>::get(nb::object(row[2]).ptr(), {});
  if (kind == "var") return io::VarLenFeature{dtype};
  if (kind == "ragged") return io::RaggedFeature{dtype};
  const Shape shape = From<Shape>::get(nb::object(row[3]).ptr(), {});
  std::optional<Tensor> otherwise;
  if (const nb::object given = row[4]; !given.is_none()) {
    otherwise = tensor_of(given.ptr());
  }
  if (kind == "fixed") return io::FixedLenFeature{shape, dtype, otherwise};
  return io::FixedLenSequenceFeature{shape, dtype, true, otherwise};
}

nb::dict by_name(const std::map<std::string, Tensor>& tensors) {
  nb::dict all;
  for (const auto& [name, t] : tensors) all[name.c_str()] = to_python(t);
  return all;
}

// rows: (name, kind, dtype, shape, default). Returns values, lengths and row
// splits by name.
nb::tuple parse(nb::handle serialized, nb::list rows, bool single) {
  const Tensor messages = tensor_of(serialized.ptr());
  io::FeatureSpec spec;
  for (nb::handle row : rows) {
    spec.emplace_back(nb::cast<std::string>(row[0]), feature_of(row));
  }
  const Site site = site_of_caller();
  const io::ParsedFeatures p = freely([&] {
    return single ? io::parse_single_example(messages, spec, site)
                  : io::parse_example(messages, spec, site);
  });
  return nb::make_tuple(by_name(p.values), by_name(p.lengths),
                        by_name(p.row_splits));
}

}  // namespace

void add_examples(nb::module_& m) {
  m.def("parse_example", &parse);
  nb::class_<io::TFRecordWriter>(m, "TFRecordWriter")
      .def("__init__",
           [](io::TFRecordWriter* self, const std::string& path,
              const std::string& compression, int level) {
             new (self) io::TFRecordWriter(path, {compression, level},
                                           site_of_caller());
           })
      .def("write",
           [](io::TFRecordWriter& w, nb::handle record) {
             const auto bytes = From<std::string>::get(record.ptr(), {});
             freely([&] { w.write(std::string_view(bytes)); });
           })
      .def("flush", [](io::TFRecordWriter& w) { freely([&] { w.flush(); }); })
      .def("close", [](io::TFRecordWriter& w) { freely([&] { w.close(); }); });
}

}  // namespace berth::python
