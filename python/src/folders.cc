// Data sets of whole folders and tables, and options of data sets
// (berth/data.py, berth/keras/_folders.py).

#include "berth/data_files.h"
#include "berth/data_options.h"
#include "berth/keras/from_directory.h"
#include "classes.h"
#include "convert.h"

namespace berth::python {

namespace {

using data::Dataset;

// Sets a field of options to what a dictionary has under its name, unless that
// is None.
template <class T>
void set(const nb::dict& d, const char* name, T& field) {
  if (!d.contains(name)) return;
  const nb::object value = d[name];
  if (!value.is_none()) field = From<T>::get(value.ptr(), {});
}

nb::tuple make_csv(std::vector<std::string> files, int64_t batch, nb::dict d) {
  data::MakeCsvOptions o;
  set(d, "column_names", o.column_names);
  set(d, "label_name", o.label_name);
  set(d, "select_columns", o.select_columns);
  set(d, "use_quote_delim", o.use_quote_delim);
  set(d, "na_value", o.na_value);
  set(d, "header", o.header);
  set(d, "num_epochs", o.num_epochs);
  set(d, "shuffle", o.shuffle);
  set(d, "shuffle_buffer_size", o.shuffle_buffer_size);
  set(d, "shuffle_seed", o.shuffle_seed);
  set(d, "prefetch_buffer_size", o.prefetch_buffer_size);
  set(d, "num_rows_for_inference", o.num_rows_for_inference);
  set(d, "compression_type", o.compression_type);
  set(d, "num_parallel_reads", o.num_parallel_reads);
  o.field_delim = nb::cast<std::string>(d["field_delim"]).at(0);
  for (nb::handle v : nb::cast<nb::list>(d["column_defaults"])) {
    if (nb::isinstance<PyDType>(v)) {
      o.column_defaults.emplace_back(nb::cast<PyDType>(v).value);
    } else {
      o.column_defaults.emplace_back(tensor_of(v.ptr()));
    }
  }
  const Site site = site_of_caller();
  const auto made =
      freely([&] { return data::make_csv_dataset(files, batch, o, site); });
  return nb::make_tuple(nb::cast(made.dataset), nb::cast(made.names));
}

// What the options of both kinds of files have.
template <class Options>
Options common(const nb::dict& d) {
  Options o;
  set(d, "labels", o.labels);
  set(d, "label_mode", o.label_mode);
  set(d, "class_names", o.class_names);
  set(d, "batch_size", o.batch_size);
  set(d, "shuffle", o.shuffle);
  set(d, "seed", o.seed);
  set(d, "validation_split", o.validation_split);
  set(d, "subset", o.subset);
  set(d, "follow_links", o.follow_links);
  return o;
}

nb::tuple folder(const keras::utils::DirectoryDataset& d) {
  return nb::make_tuple(nb::cast(d.dataset), nb::cast(d.class_names),
                        nb::cast(d.file_paths));
}

nb::tuple images(const std::string& path, nb::dict d) {
  auto o = common<keras::utils::ImageDirectoryOptions>(d);
  set(d, "color_mode", o.color_mode);
  set(d, "image_size", o.image_size);
  set(d, "interpolation", o.interpolation);
  set(d, "crop_to_aspect_ratio", o.crop_to_aspect_ratio);
  set(d, "pad_to_aspect_ratio", o.pad_to_aspect_ratio);
  const Site site = site_of_caller();
  return folder(freely([&] {
    return keras::utils::image_dataset_from_directory(path, o, site);
  }));
}

nb::tuple texts(const std::string& path, nb::dict d) {
  auto o = common<keras::utils::TextDirectoryOptions>(d);
  set(d, "max_length", o.max_length);
  const Site site = site_of_caller();
  return folder(freely([&] {
    return keras::utils::text_dataset_from_directory(path, o, site);
  }));
}

}  // namespace

void add_folders(nb::module_& m) {
  m.def("make_csv", &make_csv);
  m.def("images_of_folder", &images);
  m.def("texts_of_folder", &texts);
  m.def("with_policy", [](const Dataset& d, int policy) {
    data::Options o;
    o.experimental_distribute.auto_shard_policy =
        static_cast<data::AutoShardPolicy>(policy);
    return data::with_options(d, o, site_of_caller());
  });
}

}  // namespace berth::python
