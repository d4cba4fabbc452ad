// The state of a fit of the package Keras, which strategy.elastic() keeps.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "berth/distribute.h"
#include "classes.h"
#include "convert.h"
#include "gil.h"
#include "keras/training/elastic_state.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

struct ElasticFit {
  explicit ElasticFit(const distribute::Strategy& s)
      : state(s.core(), site_of_caller()) {}

  std::string text;  // of Python: the position, history and callbacks
  keras::ElasticState state;
};

std::pair<std::string, std::string> begin(ElasticFit& fit,
                                          const std::vector<Variable>& all,
                                          std::string text) {
  using Found = keras::ElasticState::Found;
  fit.text = std::move(text);
  switch (fit.state.begin({{"variables", all},
                           {"fit", fit.text},
                           {"random", train::random_state()}})) {
    case Found::kNothing:
      return {"nothing", ""};
    case Found::kState:
      return {"state", fit.text};
    case Found::kEnd:
      break;
  }
  return {"end", fit.state.text("fit")};
}

}  // namespace

void add_elastic(nb::module_& m) {
  nb::class_<ElasticFit>(m, "ElasticFit")
      .def(nb::init<const distribute::Strategy&>(), "strategy"_a)
      .def_prop_ro("on", [](const ElasticFit& f) { return f.state.on(); })
      .def_prop_ro("fetched",
                   [](const ElasticFit& f) { return f.state.fetched(); })
      .def("begin", &begin, "variables"_a, "text"_a, nb::call_guard<Free>())
      .def(
          "copy",
          [](ElasticFit& f, int64_t progress, std::string text) {
            f.text = std::move(text);
            f.state.copy(progress);
          },
          "progress"_a, "text"_a, nb::call_guard<Free>())
      .def(
          "step_ends", [](ElasticFit& f) { return f.state.step_ends(); },
          nb::call_guard<Free>())
      .def(
          "hand_over", [](ElasticFit& f) { f.state.hand_over(); },
          nb::call_guard<Free>());
}

}  // namespace berth::python
