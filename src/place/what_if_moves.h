// MoveFinder: changes to a program that make a node run on another device.
//
// Guesses from the node's constraint set, from the smallest change to the
// largest, and tests each by placing the changed graph; deletion then makes the
// result minimal. Internal to the module. One thread.

#ifndef BERTH_PLACE_WHAT_IF_MOVES_H_
#define BERTH_PLACE_WHAT_IF_MOVES_H_

#include <optional>
#include <vector>

#include "berth/placement.h"
#include "place/place.h"

namespace berth {

class MoveFinder {
 public:
  // `graph` is unplaced; trials change it and restore it afterwards.
  MoveFinder(Graph& graph, const Placement& placement,
             const PlaceOptions& options, int32_t node);

  // device: in the order of DeviceTable. Empty: nothing helps.
  std::optional<std::vector<placement::Change>> find(int32_t device);

 private:
  using Changes = std::vector<placement::Change>;

  bool works(const Changes& changes, int32_t device);
  Changes minimal(Changes changes, int32_t device);
  std::vector<Changes> guesses(int32_t device);
  Changes leave_groups();
  static Changes with(Changes a, const Changes& b);
  int32_t decider() const;
  placement::Change change(placement::Change::Kind kind, int32_t node,
                           std::string to) const;

  Graph& graph_;
  const Placement& placement_;
  const PlaceOptions& options_;
  const int32_t node_;
};

bool needs_kernel(const std::vector<placement::Change>& changes);

}  // namespace berth

#endif  // BERTH_PLACE_WHAT_IF_MOVES_H_
