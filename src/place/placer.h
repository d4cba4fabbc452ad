// PlacerState: devices, decisions and messages shared by the placing rules.
//
// Internal to the room. Devices are small numbers here: positions in the
// caller's order of preference. One thread.

#ifndef BERTH_PLACE_PLACER_H_
#define BERTH_PLACE_PLACER_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "device/device_name.h"
#include "place/place.h"

namespace berth {

// Returns "GPU:1", for devices of other jobs "worker:1/GPU:1".
std::string short_device(const std::string& full_name);

class PlacerState {
 public:
  struct Candidate {
    DeviceName name;
    std::string full_name;
    const PlaceDevice* given;
  };

  // Throws errors::InvalidArgument for an empty list, names that are
  // malformed or repeated, and references that leave the graph.
  PlacerState(Graph& graph, const PlaceOptions& options);

  bool can_run(int32_t node, int32_t device) const;
  // Returns the devices that fit a request, in order of preference.
  // Throws errors::InvalidArgument naming `node` when there is none.
  const std::vector<int32_t>& matches(const std::string& request, int32_t node);
  // Returns the device of exactly this name, -1: none.
  int32_t find(const std::string& full_name) const;

  void set(int32_t node, int32_t device, PlaceRule rule, int32_t because = -1);
  // Returns false and does nothing when the device cannot run the node.
  bool try_set(int32_t node, int32_t device, PlaceRule rule, int32_t because);
  // Throws errors::Unimplemented unless a device that fits can run the node.
  void obey_request(int32_t node);
  void use_default(int32_t node);
  void note_colocation_ignored(int32_t node, int32_t with);

  // Throws errors::Unimplemented; `why` says why `device` was wanted.
  [[noreturn]] void fail_no_kernel(int32_t node, const std::string& on,
                                   const std::string& why) const;
  [[noreturn]] void fail_cycle(const std::vector<int32_t>& chain) const;
  // Returns `MatMul "dense/MatMul" (model.cc:41)`.
  std::string describe(int32_t node) const;
  std::string list_devices() const;

  Graph& graph;
  const OpDef& arg_op;
  std::vector<Candidate> devices;
  int32_t host = 0;                // the first CPU, else the first device
  std::vector<int32_t> device_of;  // per node, -1: not yet
  Placement placement;

 private:
  std::unordered_map<std::string, std::vector<int32_t>> matches_;
};

// Places the handles of variables and every op that touches one: ops and
// handles connected by resource edges form groups of one device. Calls are
// left out: a callee may use variables of many devices.
void place_variables(PlacerState& state);

}  // namespace berth

#endif  // BERTH_PLACE_PLACER_H_
