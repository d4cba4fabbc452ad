// Data sets. Elements are lists of tensors here; their structure is Python's
// affair (berth/data.py).

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "berth/data_files.h"
#include "berth/recompute_grad.h"
#include "classes.h"
#include "convert.h"
#include "data/host_budget.h"
#include "errors.h"
#include "held.h"
#include "preprocess/named_files.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using data::Dataset;

Tensors leaves_in(nb::handle list) {
  Tensors all;
  for (nb::handle t : list) all.push_back(tensor_of(t.ptr()));
  return all;
}

// Calls Python from any thread of a pipeline.
template <class Fn>
auto in_python(const Fn& fn) {
  const Gil gil;
  try {
    return fn();
  } catch (nb::python_error& e) {
    raise_in_engine(e, errors::Code::kUnknown);
  }
}

// fn(leaves) -> leaves, called by any thread of a pipeline.
std::function<Tensors(const Tensors&)> mapped(nb::object fn) {
  return [fn = held(std::move(fn))](const Tensors& element) {
    return in_python([&] { return leaves_in((*fn)(to_python(element))); });
  };
}

// The same in the thread that asked: what is thrown comes out as it was.
RecomputedListFn mapped_plainly(nb::object fn) {
  return [fn = held(std::move(fn))](const Tensors& x) {
    const Gil gil;
    return leaves_in((*fn)(to_python(x)));
  };
}

std::vector<TensorSpec> specs_of(nb::list list) {
  std::vector<TensorSpec> specs;
  for (nb::handle s : list) {
    specs.push_back(
        {From<Shape>::get(s[0].ptr(), {}), From<DType>::get(s[1].ptr(), {})});
  }
  return specs;
}

// One pass; the GIL is free while an element is computed.
class Pass {
 public:
  explicit Pass(const Dataset& d)
      : iterator_(std::make_unique<data::Iterator>(d.make_iterator())) {}
  ~Pass() {
    if (is_left()) {
      static_cast<void>(iterator_.release());
    } else if (!iterator_->status().ended) {
      freely([this] { end(std::move(iterator_)); });
    }
  }
  data::Iterator& iterator() { return *iterator_; }
  nb::object next() {
    bool more = false;
    Tensors element;
    {
      const Free free;
      std::lock_guard one_at_a_time(mutex_);
      more = iterator_->next(element);
    }
    if (!more) return nb::none();
    return to_python(element);
  }

 private:
  // Its threads may be in a function of the user's that blocks: a second is
  // enough to wait for it.
  static void end(std::unique_ptr<data::Iterator> iterator) {
    auto ended = std::make_shared<std::promise<void>>();
    const auto wait = ended->get_future();
    try {
      std::thread([it = std::move(iterator), ended]() mutable {
        it.reset();
        ended->set_value();
      }).detach();
    } catch (const std::system_error&) {  // no thread: it has ended here
      return;
    }
    wait.wait_for(std::chrono::seconds(1));
  }

  std::mutex mutex_;
  std::unique_ptr<data::Iterator> iterator_;
};

Dataset from_generator(nb::object make, nb::list specs) {
  data::GeneratorFactory factory = [make = held(std::move(make))] {
    return in_python([&]() -> data::Generator {
      return [pass = held((*make)())] {
        return in_python([&]() -> std::optional<Tensors> {
          const nb::object element = (*pass)();
          if (element.is_none()) return std::nullopt;
          return leaves_in(element);
        });
      };
    });
  };
  return Dataset::from_generator(std::move(factory), specs_of(specs),
                                 site_of_caller());
}

Dataset map(const Dataset& d, nb::object fn, int64_t calls, bool ordered) {
  data::MapOptions o;
  o.num_parallel_calls = static_cast<decltype(o.num_parallel_calls)>(calls);
  o.deterministic = ordered;
  return d.map(mapped(std::move(fn)), o, site_of_caller());
}

// Says of the map that calls this thread how its function runs.
void note_plan(bool traced) {
  data::note_manner(traced ? ", as a plan"
                           : ", op by op from Python: it cannot be traced");
}

data::Predicate predicate(nb::object fn) {
  return [fn = held(std::move(fn))](const Tensors& element) {
    return in_python(
        [&] { return From<bool>::get((*fn)(to_python(element)).ptr(), {}); });
  };
}

// fn(leaves) -> Dataset.
data::DatasetFunction dataset_of(nb::object fn) {
  return [fn = held(std::move(fn))](const Tensors& element) {
    return in_python(
        [&] { return nb::cast<Dataset>((*fn)(to_python(element))); });
  };
}

std::function<int64_t(const Tensors&)> number_of(nb::object fn) {
  return [fn = held(std::move(fn))](const Tensors& element) {
    return in_python([&] {
      return From<int64_t>::get((*fn)(to_python(element)).ptr(), {});
    });
  };
}

Dataset scan(const Dataset& d, nb::list state, nb::object fn) {
  return d.scan(
      leaves_in(state),
      [fn = held(std::move(fn))](const Tensors& s, const Tensors& element) {
        return in_python([&] {
          const nb::tuple both =
              nb::cast<nb::tuple>((*fn)(to_python(s), to_python(element)));
          return std::pair(leaves_in(both[0]), leaves_in(both[1]));
        });
      },
      site_of_caller());
}

Dataset group_by_window(const Dataset& d, nb::object key, nb::object reduce,
                        int64_t size) {
  return d.group_by_window(
      number_of(std::move(key)),
      [fn = held(std::move(reduce))](int64_t k, const Dataset& window) {
        return in_python([&] { return nb::cast<Dataset>((*fn)(k, window)); });
      },
      {.window_size = size}, site_of_caller());
}

Dataset window(const Dataset& d, int64_t size, std::optional<int64_t> shift,
               int64_t stride, bool drop, nb::object fn) {
  data::WindowOptions o;
  o.shift = shift;
  o.stride = stride;
  o.drop_remainder = drop;
  const auto windows = d.window(size, o, site_of_caller());
  if (fn.is_none()) return windows.batch(site_of_caller());
  return windows.flat_map(
      [fn = held(std::move(fn))](const Dataset& w) {
        return in_python([&] { return nb::cast<Dataset>((*fn)(w)); });
      },
      site_of_caller());
}

void add_more(nb::class_<Dataset>& c) {
  c.def_static("counter",
               [](int64_t start, int64_t step) {
                 return Dataset::counter(start, step, site_of_caller());
               })
      .def_static(
          "random",
          [](std::optional<uint64_t> seed, bool again) {
            return Dataset::random(
                {.seed = seed, .rerandomize_each_iteration = again},
                site_of_caller());
          },
          "seed"_a.none(), "again"_a)
      .def_static(
          "sample_from_datasets",
          [](std::vector<Dataset> all, std::vector<double> weights,
             std::optional<uint64_t> seed, bool stop) {
            data::SampleOptions o;
            o.weights = std::move(weights);
            o.seed = seed;
            o.stop_on_empty_dataset = stop;
            return Dataset::sample_from_datasets(all, o, site_of_caller());
          },
          "all"_a, "weights"_a, "seed"_a.none(), "stop"_a)
      .def_static(
          "choose_from_datasets",
          [](std::vector<Dataset> all, const Dataset& choice, bool stop) {
            return Dataset::choose_from_datasets(
                all, choice, {.stop_on_empty_dataset = stop}, site_of_caller());
          })
      .def("interleave",
           [](const Dataset& d, nb::object fn, int64_t cycle, int64_t block,
              int64_t calls, bool ordered) {
             data::InterleaveOptions o;
             o.cycle_length = cycle;
             o.block_length = block;
             o.num_parallel_calls = calls;
             o.deterministic = ordered;
             return d.interleave(dataset_of(std::move(fn)), o,
                                 site_of_caller());
           })
      .def("flat_map",
           [](const Dataset& d, nb::object fn) {
             return d.flat_map(dataset_of(std::move(fn)), site_of_caller());
           })
      .def("window", &window, "size"_a, "shift"_a.none(), "stride"_a, "drop"_a,
           "fn"_a.none())
      .def("take_while",
           [](const Dataset& d, nb::object fn) {
             return d.take_while(predicate(std::move(fn)), site_of_caller());
           })
      .def("unique",
           [](const Dataset& d) { return d.unique(site_of_caller()); })
      .def("scan", &scan)
      .def("group_by_window", &group_by_window)
      .def("rebatch",
           [](const Dataset& d, std::vector<int64_t> sizes, bool drop) {
             return d.rebatch(std::move(sizes), {.drop_remainder = drop},
                              site_of_caller());
           })
      .def("bucket_by_sequence_length",
           [](const Dataset& d, nb::object length, std::vector<int64_t> bounds,
              std::vector<int64_t> sizes, nb::list shapes, nb::list values,
              bool to_boundary, bool drop) {
             data::BucketOptions o;
             for (nb::handle s : shapes) {
               o.padded_shapes.push_back(From<Shape>::get(s.ptr(), {}));
             }
             o.padding_values = leaves_in(values);
             o.pad_to_bucket_boundary = to_boundary;
             o.drop_remainder = drop;
             return d.bucket_by_sequence_length(
                 number_of(std::move(length)), std::move(bounds),
                 std::move(sizes), o, site_of_caller());
           })
      .def(
          "rejection_resample",
          [](const Dataset& d, nb::object fn, std::vector<double> target,
             std::vector<double> initial, std::optional<uint64_t> seed) {
            data::ResampleOptions o;
            o.initial_dist = std::move(initial);
            o.seed = seed;
            return d.rejection_resample(number_of(std::move(fn)),
                                        std::move(target), o, site_of_caller());
          },
          "fn"_a, "target"_a, "initial"_a, "seed"_a.none())
      .def("ignore_errors",
           [](const Dataset& d, bool log) {
             return d.ignore_errors({.log_warning = log}, site_of_caller());
           })
      .def("snapshot",
           [](const Dataset& d, const std::string& path) {
             return d.snapshot(path, {}, site_of_caller());
           })
      .def("assert_cardinality",
           [](const Dataset& d, int64_t n) {
             return d.assert_cardinality(n, site_of_caller());
           })
      .def("prefetch_to_device",
           [](const Dataset& d, const std::string& device, int64_t n) {
             return d.prefetch_to_device(device, n, site_of_caller());
           })
      .def("copy_to_device", [](const Dataset& d, const std::string& device) {
        return d.copy_to_device(device, site_of_caller());
      });
}

// Names, or a dataset of them.
data::FileNames files_of(nb::handle o) {
  if (nb::isinstance<Dataset>(o)) return nb::cast<const Dataset&>(o);
  return nb::cast<std::vector<std::string>>(o);
}

void add_files(nb::module_& m) {
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

// ((x_train, y_train), (x_test, y_test)) of arrays.
template <class Data>
nb::object arrays_of_data(const Data& d) {
  return nb::make_tuple(
      nb::make_tuple(array_of(d.train.x), array_of(d.train.y)),
      nb::make_tuple(array_of(d.test.x), array_of(d.test.y)));
}

// The same of texts: lists of lists.
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
  m.def("call_recomputed", [](nb::object fn, nb::list x) {
    const Tensors in = leaves_in(x);
    const RecomputedListFn run = mapped_plainly(std::move(fn));
    const Site site = site_of_caller();
    return to_python(freely([&] { return call_recomputed(run, in, site); }));
  });
}

}  // namespace

data::Iterator* iterator_of(nb::handle o) {
  return nb::isinstance<Pass>(o) ? &nb::cast<Pass&>(o).iterator() : nullptr;
}

void add_data(nb::module_& m) {
  nb::class_<Pass>(m, "Pass").def("next", &Pass::next);
  nb::class_<Dataset> c(m, "Dataset");
  c.def_static("from_tensor_slices",
               [](nb::list leaves) {
                 return Dataset::from_tensor_slices(leaves_in(leaves),
                                                    site_of_caller());
               })
      .def_static("from_tensors",
                  [](nb::list leaves) {
                    return Dataset::from_tensors(leaves_in(leaves),
                                                 site_of_caller());
                  })
      .def_static("from_generator", &from_generator)
      .def_static("range",
                  [](int64_t start, int64_t stop, int64_t step) {
                    return Dataset::range(start, stop, step, site_of_caller());
                  })
      .def_static("zip",
                  [](std::vector<Dataset> all) {
                    return Dataset::zip(all, site_of_caller());
                  })
      .def(
          "pass_", [](const Dataset& d) { return new Pass(d); },
          nb::rv_policy::take_ownership)
      .def("map", &map)
      .def("filter",
           [](const Dataset& d, nb::object fn) {
             return d.filter(predicate(std::move(fn)), site_of_caller());
           })
      .def("concatenate",
           [](const Dataset& d, const Dataset& other) {
             return d.concatenate(other, site_of_caller());
           })
      .def("batch",
           [](const Dataset& d, int64_t size, bool drop) {
             return d.batch(size, {.drop_remainder = drop}, site_of_caller());
           })
      .def("padded_batch",
           [](const Dataset& d, int64_t size, bool drop, nb::list shapes,
              nb::list values) {
             data::PaddedBatchOptions o;
             o.drop_remainder = drop;
             for (nb::handle s : shapes) {
               o.padded_shapes.push_back(From<Shape>::get(s.ptr(), {}));
             }
             o.padding_values = leaves_in(values);
             return d.padded_batch(size, o, site_of_caller());
           })
      .def("unbatch",
           [](const Dataset& d) { return d.unbatch(site_of_caller()); })
      .def(
          "shuffle",
          [](const Dataset& d, int64_t size, std::optional<int64_t> seed,
             bool each) {
            data::ShuffleOptions o;
            if (seed) o.seed = *seed;
            o.reshuffle_each_iteration = each;
            return d.shuffle(size, o, site_of_caller());
          },
          "size"_a, "seed"_a.none(), "each"_a)
      .def("repeat", [](const Dataset& d,
                        int64_t n) { return d.repeat(n, site_of_caller()); })
      .def("take", [](const Dataset& d,
                      int64_t n) { return d.take(n, site_of_caller()); })
      .def("skip", [](const Dataset& d,
                      int64_t n) { return d.skip(n, site_of_caller()); })
      .def("shard", [](const Dataset& d, int64_t n,
                       int64_t i) { return d.shard(n, i, site_of_caller()); })
      .def("enumerate",
           [](const Dataset& d, int64_t start) {
             return d.enumerate(start, site_of_caller());
           })
      .def("cache",
           [](const Dataset& d, const std::string& path) {
             return d.cache(path, site_of_caller());
           })
      .def("prefetch",
           [](const Dataset& d, int64_t n) {
             return d.prefetch(n, site_of_caller());
           })
      .def("cardinality",
           [](const Dataset& d) {
             const Free free;
             return d.cardinality();
           })
      .def("element_spec",
           [](const Dataset& d) {
             const auto& specs = [&]() -> const std::vector<TensorSpec>& {
               const Free free;
               return d.element_spec();
             }();
             nb::list all;
             for (const TensorSpec& s : specs) {
               all.append(
                   nb::make_tuple(to_python(s.shape), to_python(s.dtype)));
             }
             return all;
           })
      .def("explain", [](const Dataset& d) { return d.explain(); });
  add_more(c);
  add_files(m);
  m.def("note_plan", &note_plan);
  m.attr("AUTOTUNE") = static_cast<int64_t>(data::AUTOTUNE);
  add_datasets(m);
}

}  // namespace berth::python
