// Data sets. Elements are lists of tensors here; their structure is Python's
// affair (berth/data.py).

#include "classes.h"
#include "convert.h"
#include "held.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using data::Dataset;

Tensors leaves_in(nb::handle list) {
  Tensors all;
  for (nb::handle t : list) all.push_back(tensor_of(t.ptr()));
  return all;
}

// fn(leaves) -> leaves, called by any thread of a pipeline.
std::function<Tensors(const Tensors&)> mapped(nb::object fn) {
  return [fn = held(std::move(fn))](const Tensors& element) {
    nb::gil_scoped_acquire gil;
    return leaves_in((*fn)(to_python(element)));
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
  explicit Pass(const Dataset& d) : iterator_(d.make_iterator()) {}
  nb::object next() {
    bool more = false;
    {
      nb::gil_scoped_release release;
      more = iterator_.next(element_);
    }
    if (!more) return nb::none();
    return to_python(element_);
  }

 private:
  data::Iterator iterator_;
  Tensors element_;
};

Dataset from_generator(nb::object make, nb::list specs) {
  data::GeneratorFactory factory = [make = held(std::move(make))]() {
    nb::gil_scoped_acquire gil;
    Held pass = held((*make)());
    return [pass]() -> std::optional<Tensors> {
      nb::gil_scoped_acquire inner;
      const nb::object element = (*pass)();
      if (element.is_none()) return std::nullopt;
      return leaves_in(element);
    };
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

Dataset filter(const Dataset& d, nb::object fn) {
  return d.filter(
      [fn = held(std::move(fn))](const Tensors& element) {
        nb::gil_scoped_acquire gil;
        return From<bool>::get((*fn)(to_python(element)).ptr(), {});
      },
      site_of_caller());
}

}  // namespace

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
      .def("filter", &filter)
      .def("concatenate",
           [](const Dataset& d, const Dataset& other) {
             return d.concatenate(other, site_of_caller());
           })
      .def("batch",
           [](const Dataset& d, int64_t size, bool drop) {
             return d.batch(size, {.drop_remainder = drop}, site_of_caller());
           })
      .def("padded_batch",
           [](const Dataset& d, int64_t size, bool drop) {
             data::PaddedBatchOptions o;
             o.drop_remainder = drop;
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
             nb::gil_scoped_release release;
             return d.cardinality();
           })
      .def("element_spec",
           [](const Dataset& d) {
             const auto& specs = [&]() -> const std::vector<TensorSpec>& {
               nb::gil_scoped_release release;
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
  m.attr("AUTOTUNE") = static_cast<int64_t>(data::AUTOTUNE);
  m.def("load_mnist", [] {
    keras::datasets::mnist::Data d;
    {
      nb::gil_scoped_release release;
      d = keras::datasets::mnist::load_data();
    }
    return nb::make_tuple(
        nb::make_tuple(array_of(d.train.x), array_of(d.train.y)),
        nb::make_tuple(array_of(d.test.x), array_of(d.test.y)));
  });
}

}  // namespace berth::python
