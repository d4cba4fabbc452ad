#include "op/with_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "base/diagnostics.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth {

void with_room(const std::string& what, const std::function<void()>& make) {
  const DeviceScope* scope = t_state.scope;
  const bool asked = scope != nullptr && scope->kind != ScopeKind::kEngine &&
                     !scope->name.str().empty();
  std::exception_ptr first;
  try {
    return make();
  } catch (const errors::ResourceExhausted&) {
    if (asked || t_state.strategy != nullptr || t_state.replica != nullptr) {
      throw;
    }
    first = std::current_exception();
  }
  std::vector<Device*> devices = DeviceManager::get().devices();
  std::stable_partition(devices.begin(), devices.end(),
                        [](Device* d) { return !d->id().is_cpu(); });
  for (Device* d : devices) {
    try {
      const OnDevice there(d);
      make();
    } catch (const errors::ResourceExhausted&) {
      continue;
    }
    // Under the other policies variables move to where they are used.
    const placement::Policy policy = config::placement_policy();
    if (policy.is_auto() || policy.is_fit()) return;
    report_once(where_text(),
                {"made-elsewhere", debugging::Severity::kWarning,
                 fmt::format("{}{} does not fit on the default device, and is "
                             "on {}; compile with placement \"fit\" or "
                             "\"auto\", or name a device with "
                             "berth::device()",
                             what, where_text(), d->short_name()),
                 t_state.site});
    return;
  }
  std::rethrow_exception(first);
}

}  // namespace berth
