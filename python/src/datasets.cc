// Ready-made data sets (keras.datasets).

#include "classes.h"
#include "convert.h"
#include "preprocess/named_files.h"

namespace berth::python {

namespace {

// ((x_train, y_train), (x_test, y_test)) of arrays.
template <class Data>
nb::object arrays_of_data(const Data& d) {
  return nb::make_tuple(
      nb::make_tuple(array_of(d.train.x), array_of(d.train.y)),
      nb::make_tuple(array_of(d.test.x), array_of(d.test.y)));
}

// As lists of lists, for texts.
nb::object lists_of_data(const keras::datasets::SequenceData& d) {
  return nb::make_tuple(
      nb::make_tuple(nb::cast(d.train.x), array_of(d.train.y)),
      nb::make_tuple(nb::cast(d.test.x), array_of(d.test.y)));
}

keras::datasets::SequenceOptions sequence_options(const nb::dict& d) {
  using Whole = std::optional<int64_t>;
  keras::datasets::SequenceOptions o;
  o.num_words = nb::cast<Whole>(d["num_words"]);
  o.skip_top = nb::cast<int64_t>(d["skip_top"]);
  o.maxlen = nb::cast<Whole>(d["maxlen"]);
  o.seed = nb::cast<int64_t>(d["seed"]);
  o.start_char = nb::cast<Whole>(d["start_char"]);
  o.oov_char = nb::cast<Whole>(d["oov_char"]);
  o.index_from = nb::cast<int64_t>(d["index_from"]);
  o.data_dir = nb::cast<std::string>(d["data_dir"]);
  return o;
}

}  // namespace

void add_datasets(nb::module_& m) {
  namespace sets = keras::datasets;
  m.def("load_mnist", [] {
    return arrays_of_data(freely([] { return sets::mnist::load_data(); }));
  });
  m.def("load_fashion_mnist", [] {
    return arrays_of_data(
        freely([] { return sets::fashion_mnist::load_data(); }));
  });
  m.def("load_cifar10", [] {
    return arrays_of_data(freely([] { return sets::cifar10::load_data(); }));
  });
  m.def("load_cifar100", [](const std::string& mode) {
    return arrays_of_data(freely(
        [&] { return sets::cifar100::load_data({.label_mode = mode}); }));
  });
  m.def("load_california_housing",
        [](const std::string& version, double split, int64_t seed) {
          return arrays_of_data(freely([&] {
            return sets::california_housing::load_data(
                {.version = version, .test_split = split, .seed = seed});
          }));
        });
  // The path of imdb.npz or reuters.npz, or of its plain file.
  m.def("find_sequences", [](const std::string& name) {
    return freely([&] {
      return sets::find_archive(name == "imdb" ? sets::kImdb : sets::kReuters,
                                "", true);
    });
  });
  m.def("load_imdb", [](nb::dict options) {
    const auto o = sequence_options(options);
    return lists_of_data(freely([&] { return sets::imdb::load_data(o); }));
  });
  m.def("load_reuters", [](nb::dict options, double split) {
    const auto o = sequence_options(options);
    return lists_of_data(
        freely([&] { return sets::reuters::load_data(o, split); }));
  });
}

}  // namespace berth::python
