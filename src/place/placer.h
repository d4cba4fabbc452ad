// Placer: what the rules of both policies share: sets, decisions, messages.
//
// Internal to the module. A rule decides for a set by its root; finish()
// applies the decision to every member. One thread.

#ifndef BERTH_PLACE_PLACER_H_
#define BERTH_PLACE_PLACER_H_

#include <span>
#include <string>
#include <vector>

#include "place/constraint_sets.h"

namespace berth {

class Placer {
 public:
  // Throws what DeviceTable and ConstraintSets throw.
  Placer(Graph& graph, const PlaceOptions& options);

  int32_t root(int32_t node) const { return root_[node]; }
  // In order of index; only sets with several members have a list.
  std::span<const int32_t> members(int32_t root) const;
  const ConstraintSets::Set& set(int32_t root) const {
    return sets.at_root(root);
  }
  bool decided(int32_t root) const { return device_of[root] >= 0; }
  bool allows(int32_t root, int32_t device) const {
    return set(root).allowed.has(device);
  }

  void decide(int32_t root, int32_t device, PlaceRule rule, int32_t decider,
              int32_t because = -1);
  // Returns false and does nothing when the device cannot run the set.
  bool try_decide(int32_t root, int32_t device, PlaceRule rule, int32_t decider,
                  int32_t because);
  // The devices that assignments, variables and requests leave to choose from:
  // select_device()'s rule, on masks, except that the handles' request is
  // dropped last. Throws PlaceInvalid and PlaceNoKernel.
  DeviceSet candidates(int32_t root);
  // Decides by assignment, variable or request. False: there is none.
  bool obey(int32_t root);
  // The first device that has all kernels.
  void use_default(int32_t root);
  void note_colocation_ignored(int32_t node, int32_t with);

  // Writes devices and reasons of all nodes; returns the placement.
  Placement finish();

  Graph& graph;
  const PlaceOptions& options;
  DeviceTable devices;
  ConstraintSets sets;
  std::vector<int32_t> device_of;  // per root; -1: undecided

 private:
  struct Decision {
    PlaceRule rule = PlaceRule::kNone;
    int32_t decider = -1;  // the member to which the rule applied
    int32_t because = -1;
  };
  void list_members();
  int32_t decider_of_request(int32_t root, int32_t device);
  int32_t pinned_member(int32_t root) const;
  PlaceReason reason_of(int32_t node) const;
  int32_t handle_of(int32_t node) const;
  void compare_request(int32_t node, Placement* placement);
  std::string missing_in_set(int32_t root, DeviceSet asked);

  std::vector<int32_t> root_;
  std::vector<Decision> decisions_;              // at roots
  std::vector<int32_t> members_, first_member_;  // of sets with several members
  std::vector<PlaceNote> notes_;
  struct {
    int32_t root = -1;
    DeviceSet asked = 0;
    std::string text;
  } missing_;  // the last answer
};

// Decides all sets of `placer` by the rules of its policy.
void run_rules(Placer& placer);
void place_by_berths_rules(Placer& placer);
void place_by_tensorflows_rules(Placer& placer);

}  // namespace berth

#endif  // BERTH_PLACE_PLACER_H_
