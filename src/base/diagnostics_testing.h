// Heard: collects the diagnostics of a block instead of printing them (tests).

#ifndef BERTH_BASE_DIAGNOSTICS_TESTING_H_
#define BERTH_BASE_DIAGNOSTICS_TESTING_H_

#include <string>
#include <vector>

#include "base/diagnostics.h"

namespace berth {

// Forgets what was reported before, so that "once" begins anew. One at a time.
class Heard {
 public:
  Heard() {
    reset_diagnostics_for_testing();
    before_ = debugging::set_diagnostic_handler(
        [this](const debugging::Diagnostic& d) { all_.push_back(d); });
  }
  ~Heard() { debugging::set_diagnostic_handler(std::move(before_)); }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

  // Those of one id, in order.
  std::vector<debugging::Diagnostic> of(const std::string& id) const {
    std::vector<debugging::Diagnostic> list;
    for (const debugging::Diagnostic& d : all_) {
      if (d.id == id) list.push_back(d);
    }
    return list;
  }
  // The text of the only one, else how many there are.
  std::string text_of(const std::string& id) const {
    const auto list = of(id);
    return list.size() == 1 ? list[0].text : std::to_string(list.size());
  }

 private:
  std::vector<debugging::Diagnostic> all_;
  debugging::DiagnosticHandler before_;
};

}  // namespace berth

#endif  // BERTH_BASE_DIAGNOSTICS_TESTING_H_
