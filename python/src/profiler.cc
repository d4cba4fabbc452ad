// tf.profiler and tf.summary: timelines, and event files for TensorBoard.

#include "berth/profiler.h"

#include "arguments.h"
#include "classes.h"
#include "convert.h"
#include "keras/callbacks/event_file.h"

BERTH_PYTHON_HANDLE(berth::keras::EventFile, true)

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

// Opened by `with`, on one thread.
class PyTrace {
 public:
  explicit PyTrace(std::string name) : name_(std::move(name)) {}
  void enter() { trace_.emplace(name_, site_of_caller()); }
  void exit() { trace_.reset(); }

 private:
  std::string name_;
  std::optional<profiler::Trace> trace_;
};

std::vector<uint8_t> pixels_of(nb::bytes data) {
  const auto* first = reinterpret_cast<const uint8_t*>(data.c_str());
  return {first, first + data.size()};
}

void add_event_file(nb::module_& m) {
  using keras::EventFile;
  nb::class_<EventFile>(m, "EventFile")
      .def(nb::init<const std::string&>())
      .def(
          "scalar",
          [](EventFile& f, const std::string& tag, double value, int64_t step) {
            f.add(step, {keras::scalar_summary(tag, value)});
          })
      .def("histogram",
           [](EventFile& f, const std::string& tag,
              const std::vector<float>& values, int64_t step) {
             f.add(step, {keras::histogram_summary(tag, values)});
           })
      .def("image",
           [](EventFile& f, const std::string& tag, int height, int width,
              int channels, nb::bytes pixels, int64_t step) {
             f.add(step, {keras::image_summary(tag, height, width, channels,
                                               pixels_of(pixels))});
           })
      .def(
          "text",
          [](EventFile& f, const std::string& tag, const std::string& text,
             int64_t step, const std::string& plugin, nb::bytes content) {
            f.add(step,
                  {keras::text_summary(tag, text, plugin,
                                       {content.c_str(), content.size()})});
          },
          "tag"_a, "text"_a, "step"_a, "plugin"_a = "text",
          "content"_a = nb::bytes(""))
      // (name, op) pairs.
      .def("graph",
           [](EventFile& f, nb::list ops) {
             WireMessage graph;
             for (nb::handle op : ops) {
               graph.message(1, WireMessage()
                                    .bytes(1, nb::cast<std::string>(op[0]))
                                    .bytes(2, nb::cast<std::string>(op[1])));
             }
             f.add_graph(graph);
           })
      .def("flush", &EventFile::flush)
      .def("path", [](const EventFile& f) { return f.path(); });
}

}  // namespace

void add_profiler(nb::module_& m) {
  nb::class_<profiler::Timeline>(m, "Timeline")
      .def("json", &profiler::Timeline::json)
      .def("write", [](const profiler::Timeline& t,
                       const std::string& path) { t.write(path); })
      // (track, name, kind, "file:line", begin_us, end_us)
      .def("events", [](const profiler::Timeline& t) {
        nb::list all;
        for (const profiler::TimelineEvent& e : t.events()) {
          const std::string line = e.site.file == nullptr
                                       ? ""
                                       : std::string(e.site.file) + ":" +
                                             std::to_string(e.site.line);
          all.append(nb::make_tuple(e.track, e.name, e.kind, line, e.begin_us,
                                    e.end_us));
        }
        return all;
      });
  m.def(
      "profiler_start",
      [](bool checksums) {
        profiler::start({.checksums = checksums}, site_of_caller());
      },
      "checksums"_a = false);
  m.def("profiler_stop", [] {
    const Site site = site_of_caller();
    const Free free;
    return profiler::stop(site);
  });
  nb::class_<PyTrace> trace(m, "Trace");
  construct<PyTrace>(trace, "Trace", [](PyTrace* self, Arguments& a) {
    static constexpr Name kNames[] = {{"name", "name"}};
    a.bind(kNames, 1);
    new (self) PyTrace(a.get<std::string>(0));
  });
  trace.def("enter", &PyTrace::enter).def("exit", &PyTrace::exit);
  add_event_file(m);
}

}  // namespace berth::python
