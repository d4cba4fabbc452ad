// Datasets of files: lines, records, CSV.

#include "berth/data_files.h"

#include "base/urls.h"
#include "classes.h"
#include "convert.h"
#include "errors.h"
#include "held.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using data::Dataset;

// Names, or a dataset of them.
data::FileNames files_of(nb::handle o) {
  if (nb::isinstance<Dataset>(o)) return nb::cast<const Dataset&>(o);
  return nb::cast<std::vector<std::string>>(o);
}

}  // namespace

void add_files(nb::module_& m) {
  m.def(
      "_set_url_hooks",
      [](nb::object fetch, nb::object settle) {
        set_url_hooks({
            .fetch =
                [fn = held(std::move(fetch))](const std::string& url) {
                  const Gil gil;
                  try {
                    return nb::cast<std::string>((*fn)(url));
                  } catch (nb::python_error& e) {
                    raise_in_engine(e, errors::Code::kUnavailable);
                  }
                },
            .settle =
                [fn = held(std::move(settle))] {
                  const Gil gil{std::nothrow};
                  if (!gil) return;
                  try {
                    (*fn)();
                  } catch (nb::python_error& e) {
                    e.discard_as_unraisable("what is on its way to URLs");
                  }
                },
        });
      },
      "fetch"_a, "settle"_a,
      "Says how files of URLs are copied here, and how a program that is ended "
      "waits for its uploads.");
  const auto options = [](const std::string& compression, int64_t reads) {
    data::FileOptions o;
    o.compression_type = compression;
    o.num_parallel_reads = reads;
    return o;
  };
  m.def("text_lines",
        [options](nb::handle files, const std::string& type,
                  int64_t reads) -> Dataset {
          return data::TextLineDataset(files_of(files), options(type, reads),
                                       site_of_caller());
        });
  m.def("tf_records",
        [options](nb::handle files, const std::string& type,
                  int64_t reads) -> Dataset {
          return data::TFRecordDataset(files_of(files), options(type, reads),
                                       site_of_caller());
        });
  m.def("fixed_records",
        [](nb::handle files, int64_t bytes, int64_t header, int64_t footer,
           const std::string& type, int64_t reads) -> Dataset {
          data::FixedLengthOptions o;
          o.header_bytes = header;
          o.footer_bytes = footer;
          o.compression_type = type;
          o.num_parallel_reads = reads;
          return data::FixedLengthRecordDataset(files_of(files), bytes, o,
                                                site_of_caller());
        });
  m.def(
      "list_files",
      [](std::vector<std::string> patterns, bool shuffle,
         std::optional<uint64_t> seed) {
        return data::list_files(patterns, {.shuffle = shuffle, .seed = seed},
                                site_of_caller());
      },
      "patterns"_a, "shuffle"_a, "seed"_a.none());
  m.def("csv",
        [](nb::handle files, nb::list defaults, bool header,
           const std::string& delimiter, std::vector<int64_t> columns,
           std::vector<int64_t> without, const std::string& compression,
           bool quotes, const std::string& na) -> Dataset {
          std::vector<data::CsvColumn> all;
          for (nb::handle v : defaults) {
            if (nb::isinstance<PyDType>(v)) {
              all.emplace_back(nb::cast<PyDType>(v).value);
            } else {
              all.emplace_back(tensor_of(v.ptr()));
            }
          }
          data::CsvOptions o;
          o.header = header;
          o.field_delim = delimiter.at(0);
          o.select_cols = std::move(columns);
          o.exclude_cols = std::move(without);
          o.compression_type = compression;
          o.use_quote_delim = quotes;
          o.na_value = na;
          return data::CsvDataset(files_of(files), std::move(all), o,
                                  site_of_caller());
        });
}

}  // namespace berth::python
