// What the library prints, by Python's sys.stdout, which notebooks, tests and
// programs put something of their own in place of.

#include "base/output.h"

#include "classes.h"
#include "convert.h"

namespace berth::python {

namespace {

class PythonOutput final : public Output {
 public:
  void write(std::string_view text) override {
    const Gil gil;
    nb::object out = stdout_now();
    if (out.is_none()) return;  // a program without a console
    out.attr("write")(nb::str(text.data(), text.size()));
    if (nb::hasattr(out, "flush")) out.attr("flush")();
  }

  size_t columns() override {
    const Gil gil;
    return nb::cast<size_t>(
        nb::module_::import_("berth._terminal").attr("columns")(stdout_now()));
  }

 private:
  static nb::object stdout_now() {
    return nb::getattr(nb::module_::import_("sys"), "stdout", nb::none());
  }
};

}  // namespace

void add_output(nb::module_&) { set_output(std::make_unique<PythonOutput>()); }

}  // namespace berth::python
