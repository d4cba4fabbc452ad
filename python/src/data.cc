// Data sets. Elements are lists of tensors here; their structure is Python's
// affair (berth/data.py).

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "base/timeline.h"
#include "berth/recompute_grad.h"
#include "classes.h"
#include "convert.h"
#include "data/host_budget.h"
#include "elements.h"
#include "errors.h"
#include "held.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using data::Dataset;

// Calls Python from any thread of a pipeline.
template <class Fn>
auto in_python(const Fn& fn) {
  const timeline::MaybeSpan span("python", "function of a pipeline", "python");
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
    return in_python([&] { return tensors_in((*fn)(to_python(element))); });
  };
}

// Calls Python in the thread that asked: an exception comes out as it was.
RecomputedListFn mapped_plainly(nb::object fn) {
  return [fn = held(std::move(fn))](const Tensors& x) {
    const Gil gil;
    return tensors_in((*fn)(to_python(x)));
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
class Pass : public Elements {
 public:
  explicit Pass(const Dataset& d)
      : iterator_(std::make_unique<data::Iterator>(d.make_iterator())) {}
  ~Pass() override {
    if (is_left()) {
      static_cast<void>(iterator_.release());
    } else if (!iterator_->status().ended) {
      freely([this] { end(std::move(iterator_)); });
    }
  }
  data::Iterator& iterator() { return *iterator_; }

 private:
  bool take_next(Element* element) override {
    return iterator_->next(element->leaves);
  }
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

  std::unique_ptr<data::Iterator> iterator_;
};

Dataset from_generator(nb::object make, nb::list specs) {
  data::GeneratorFactory factory = [make = held(std::move(make))] {
    return in_python([&]() -> data::Generator {
      return [pass = held((*make)())] {
        return in_python([&]() -> std::optional<Tensors> {
          const nb::object element = (*pass)();
          if (element.is_none()) return std::nullopt;
          return tensors_in(element);
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
      tensors_in(state),
      [fn = held(std::move(fn))](const Tensors& s, const Tensors& element) {
        return in_python([&] {
          const nb::tuple both =
              nb::cast<nb::tuple>((*fn)(to_python(s), to_python(element)));
          return std::pair(tensors_in(both[0]), tensors_in(both[1]));
        });
      },
      site_of_caller());
}

Dataset group_by_window(const Dataset& d, nb::object key, nb::object reduce,
                        int64_t size, nb::object size_of) {
  data::GroupByWindowOptions o{.window_size = size};
  if (!size_of.is_none()) {
    o.window_size_func = [fn = held(std::move(size_of))](int64_t k) {
      return in_python([&] { return nb::cast<int64_t>((*fn)(k)); });
    };
  }
  return d.group_by_window(
      number_of(std::move(key)),
      [fn = held(std::move(reduce))](int64_t k, const Dataset& window) {
        return in_python([&] { return nb::cast<Dataset>((*fn)(k, window)); });
      },
      o, site_of_caller());
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

// A method of datasets whose last argument is the line of the user's call.
template <auto kMethod, class... Args>
Dataset at_line(const Dataset& d, Args... args) {
  return (d.*kMethod)(args..., site_of_caller());
}

void add_sources(nb::class_<Dataset>& c) {
  c.def_static("from_tensor_slices",
               [](nb::list leaves) {
                 return Dataset::from_tensor_slices(tensors_in(leaves),
                                                    site_of_caller());
               })
      .def_static("from_tensors",
                  [](nb::list leaves) {
                    return Dataset::from_tensors(tensors_in(leaves),
                                                 site_of_caller());
                  })
      .def_static("from_generator", &from_generator)
      .def_static("range",
                  [](int64_t start, int64_t stop, int64_t step) {
                    return Dataset::range(start, stop, step, site_of_caller());
                  })
      .def_static("counter",
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
      .def_static("zip",
                  [](std::vector<Dataset> all) {
                    return Dataset::zip(all, site_of_caller());
                  })
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
      .def_static("choose_from_datasets", [](std::vector<Dataset> all,
                                             const Dataset& choice, bool stop) {
        return Dataset::choose_from_datasets(
            all, choice, {.stop_on_empty_dataset = stop}, site_of_caller());
      });
}

void add_functions_of_elements(nb::class_<Dataset>& c) {
  c.def("map", &map)
      .def("filter",
           [](const Dataset& d, nb::object fn) {
             return d.filter(predicate(std::move(fn)), site_of_caller());
           })
      .def("take_while",
           [](const Dataset& d, nb::object fn) {
             return d.take_while(predicate(std::move(fn)), site_of_caller());
           })
      .def("flat_map",
           [](const Dataset& d, nb::object fn) {
             return d.flat_map(dataset_of(std::move(fn)), site_of_caller());
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
      .def("scan", &scan)
      .def("group_by_window", &group_by_window, "key"_a, "reduce"_a, "size"_a,
           "size_of"_a.none())
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
      .def("unique", &at_line<&Dataset::unique>)
      .def("ignore_errors", [](const Dataset& d, bool log) {
        return d.ignore_errors({.log_warning = log}, site_of_caller());
      });
}

void add_batches(nb::class_<Dataset>& c) {
  c.def("batch",
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
             o.padding_values = tensors_in(values);
             return d.padded_batch(size, o, site_of_caller());
           })
      .def("unbatch", &at_line<&Dataset::unbatch>)
      .def("rebatch",
           [](const Dataset& d, std::vector<int64_t> sizes, bool drop) {
             return d.rebatch(std::move(sizes), {.drop_remainder = drop},
                              site_of_caller());
           })
      .def("window", &window, "size"_a, "shift"_a.none(), "stride"_a, "drop"_a,
           "fn"_a.none())
      .def("bucket_by_sequence_length",
           [](const Dataset& d, nb::object length, std::vector<int64_t> bounds,
              std::vector<int64_t> sizes, nb::list shapes, nb::list values,
              bool to_boundary, bool drop) {
             data::BucketOptions o;
             for (nb::handle s : shapes) {
               o.padded_shapes.push_back(From<Shape>::get(s.ptr(), {}));
             }
             o.padding_values = tensors_in(values);
             o.pad_to_bucket_boundary = to_boundary;
             o.drop_remainder = drop;
             return d.bucket_by_sequence_length(
                 number_of(std::move(length)), std::move(bounds),
                 std::move(sizes), o, site_of_caller());
           });
}

void add_selection(nb::class_<Dataset>& c) {
  c.def(
       "shuffle",
       [](const Dataset& d, int64_t size, std::optional<int64_t> seed,
          bool each) {
         data::ShuffleOptions o;
         if (seed) o.seed = *seed;
         o.reshuffle_each_iteration = each;
         return d.shuffle(size, o, site_of_caller());
       },
       "size"_a, "seed"_a.none(), "each"_a)
      .def("repeat", &at_line<&Dataset::repeat, int64_t>)
      .def("take", &at_line<&Dataset::take, int64_t>)
      .def("skip", &at_line<&Dataset::skip, int64_t>)
      .def("shard", &at_line<&Dataset::shard, int64_t, int64_t>)
      .def("enumerate", &at_line<&Dataset::enumerate, int64_t>)
      .def("concatenate", &at_line<&Dataset::concatenate, const Dataset&>);
}

void add_passes(nb::class_<Dataset>& c) {
  c.def(
       "pass_", [](const Dataset& d) { return new Pass(d); },
       nb::rv_policy::take_ownership)
      .def("cache", &at_line<&Dataset::cache, const std::string&>)
      .def("snapshot",
           [](const Dataset& d, const std::string& path) {
             return d.snapshot(path, {}, site_of_caller());
           })
      .def("prefetch", &at_line<&Dataset::prefetch, int64_t>)
      .def("prefetch_to_device",
           &at_line<&Dataset::prefetch_to_device, const std::string&, int64_t>)
      .def("copy_to_device",
           &at_line<&Dataset::copy_to_device, const std::string&>)
      .def("assert_cardinality",
           &at_line<&Dataset::assert_cardinality, int64_t>)
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
}

}  // namespace

data::Iterator* iterator_of(nb::handle o) {
  return nb::isinstance<Pass>(o) ? &nb::cast<Pass&>(o).iterator() : nullptr;
}

void add_data(nb::module_& m) {
  nb::class_<Elements>(m, "Elements").def("next", &Elements::next);
  nb::class_<Pass, Elements>(m, "Pass");
  nb::class_<Dataset> c(m, "Dataset");
  add_sources(c);
  add_functions_of_elements(c);
  add_batches(c);
  add_selection(c);
  add_passes(c);
  add_files(m);
  m.def("note_plan", &note_plan);
  m.attr("AUTOTUNE") = static_cast<int64_t>(data::AUTOTUNE);
  m.def("call_recomputed", [](nb::object fn, nb::list x) {
    const Tensors in = tensors_in(x);
    const RecomputedListFn run = mapped_plainly(std::move(fn));
    const Site site = site_of_caller();
    return to_python(freely([&] { return call_recomputed(run, in, site); }));
  });
  add_datasets(m);
}

}  // namespace berth::python
