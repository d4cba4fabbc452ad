// Contracts about where things run.

#include "berth/placement.h"

#include "berth/distribute.h"
#include "classes.h"
#include "convert.h"

namespace berth::python {

namespace {

// Opened by `with`, on one thread.
class PyContractScope {
 public:
  explicit PyContractScope(placement::Contract c) : contract_(std::move(c)) {}
  void enter() { scope_.emplace(contract_, site_of_caller()); }
  void exit(bool failed) {
    if (!failed) scope_->check();
    moved_ = scope_->moved_bytes();
    scope_.reset();
  }
  int64_t moved_bytes() const {
    return scope_ ? scope_->moved_bytes() : moved_;
  }

 private:
  placement::Contract contract_;
  std::optional<placement::ContractScope> scope_;
  int64_t moved_ = 0;
};

}  // namespace

// The fields of berth.Contract (_placement.py).
placement::Contract contract_of(nb::handle c) {
  placement::Contract out;
  out.name = nb::cast<std::string>(c.attr("name"));
  out.stays_on = nb::cast<std::string>(c.attr("stays_on"));
  out.no_fallback = nb::cast<bool>(c.attr("no_fallback"));
  for (nb::handle t : c.attr("transfers")) {
    out.transfers.push_back({nb::cast<std::string>(t[0]),
                             nb::cast<std::string>(t[1]),
                             nb::cast<int64_t>(t[2])});
  }
  for (nb::handle t : c.attr("peak_memory")) {
    out.peak_memory.push_back(
        {nb::cast<std::string>(t[0]), nb::cast<int64_t>(t[1])});
  }
  for (nb::handle t : c.attr("ops")) {
    out.ops.push_back(
        {nb::cast<std::string>(t[0]), nb::cast<std::string>(t[1])});
  }
  return out;
}

placement::Contracts contracts_of(nb::handle list) {
  std::vector<placement::Contract> all;
  for (nb::handle c : list) all.push_back(contract_of(c));
  return all;
}

namespace {

void add_reports(nb::module_& m) {
  using placement::Report;
  nb::class_<Report>(m, "Placement")
      .def("str", &Report::str)
      .def("json", &Report::json)
      .def("device_of", &Report::device_of)
      .def("transfer_bytes", &Report::transfer_bytes)
      .def("fallback_bytes", &Report::fallback_bytes)
      .def("peak_bytes", &Report::peak_bytes);
  nb::class_<placement::Explanation>(m, "Explanation")
      .def("str", &placement::Explanation::str)
      .def("json", &placement::Explanation::json);
  nb::class_<distribute::StrategyPlan>(m, "StrategyPlan")
      .def("str", &distribute::StrategyPlan::str)
      .def("json", &distribute::StrategyPlan::json)
      .def("svg",
           [](const distribute::StrategyPlan& p) { return p.pipeline->svg(); });
}

}  // namespace

void add_placement(nb::module_& m) {
  add_reports(m);
  nb::class_<PyContractScope>(m, "ContractScope")
      .def("__init__",
           [](PyContractScope* self, nb::handle c) {
             new (self) PyContractScope(contract_of(c));
           })
      .def("enter", &PyContractScope::enter)
      .def("exit", &PyContractScope::exit)
      .def("moved_bytes", &PyContractScope::moved_bytes);
}

}  // namespace berth::python
