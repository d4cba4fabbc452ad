#include "distribute/strategy/ignored_launcher.h"

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "base/where.h"
#include "cluster/unread.h"

namespace berth::distribute {

void note_ignored_launcher(const char* what, Site site) {
  const std::string said = cluster::unread_launcher();
  if (said.empty()) return;
  report_once(
      "launcher-ignored",
      {"launcher-ignored", debugging::Severity::kWarning,
       fmt::format("{}, and {} ignores that: it uses this task alone{}; make a "
                   "MultiWorkerMirroredStrategy or ParameterServerStrategy to "
                   "train together, or unset the variable",
                   said, what, where_text(nullptr, site)),
       site});
}

void note_late_launcher(const char* what, Site site) {
  const std::string said = cluster::late_launcher();
  if (said.empty()) return;
  report_once(
      "launcher-late",
      {"launcher-late", debugging::Severity::kWarning,
       fmt::format("{}; {} follows what it said before{}; set it before the "
                   "first strategy or resolver is made",
                   said, what, where_text(nullptr, site)),
       site});
}

}  // namespace berth::distribute
