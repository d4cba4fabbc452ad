// What Model.fits() of both packages gives to Python.

#ifndef BERTH_PYTHON_FITS_REPORT_H_
#define BERTH_PYTHON_FITS_REPORT_H_

#include <string>

#include "convert.h"

namespace berth::python {

// "file:line"; "" when it is not known.
inline std::string line_text(Site site) {
  if (site.file == nullptr) return "";
  return std::string(site.file) + ":" + std::to_string(site.line);
}

// (fits, largest batch, [(device, peak, available)], [(device, what, line,
// bytes)]) of a distribute::StepMemory or a keras::FitsReport.
template <class Report, class Holders>
nb::tuple fits_tuple(const Report& r, const Holders& holders) {
  nb::list devices, held;
  for (const auto& d : r.devices) {
    devices.append(nb::make_tuple(d.device, d.peak_bytes, d.available_bytes));
  }
  for (const auto& h : holders) {
    held.append(nb::make_tuple(h.device, h.what, line_text(h.site), h.bytes));
  }
  return nb::make_tuple(r.fits, r.largest_batch, devices, held);
}

}  // namespace berth::python

#endif  // BERTH_PYTHON_FITS_REPORT_H_
