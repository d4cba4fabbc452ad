// Opens the planner's library for the first function that it plans.

#include "function/auto_place.h"

#include <fmt/format.h>

#include <mutex>

#include "base/immortal.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/inner_plugin.h"
#include "function/planner_plugin.h"
#include "op/dispatcher.h"

namespace berth {

const PlannerPlugin& planner_plugin() {
  static auto& mutex = immortal<std::mutex>();
  static const PlannerPlugin* opened = nullptr;
  std::lock_guard lock(mutex);
  if (opened) return *opened;
  const InnerPlugin plugin =
      open_inner_plugin("libberth_planner.so", "berth_planner_plugin");
  if (plugin.symbol == nullptr) {
    throw errors::FailedPrecondition(fmt::format(
        "placement \"auto\" needs {}, which cannot be opened{}: {}; build it "
        "(`./dev build`), and install the folder `berth` beside libberth.so",
        plugin.path, where_text(nullptr, t_state.site), plugin.why));
  }
  opened = static_cast<const PlannerPlugin*>(plugin.symbol);
  return *opened;
}

AutoPlaced auto_place(Graph& graph, const PlaceOptions& places,
                      const AutoPlacing& options) {
  if (places.devices.size() < 2) return {};
  return planner_plugin().auto_place(graph, places, options);
}

}  // namespace berth
