// Traffic: what a placed graph sends between devices, and would send if some
// ops ran elsewhere.
//
// Acts on a graph whose nodes are assigned, before partition(). Devices are
// small integers here. Internal to the module; one thread.

#ifndef BERTH_PLACE_TRAFFIC_H_
#define BERTH_PLACE_TRAFFIC_H_

#include <set>
#include <string>
#include <vector>

#include "device/device_name.h"
#include "graph/graph.h"
#include "place/place.h"

namespace berth {

class Traffic {
 public:
  Traffic(const Graph& graph, const PlaceOptions& options);

  struct Reader {
    int32_t output;
    int32_t node;
  };
  // Values that enter a set of nodes, and values that leave it.
  struct Border {
    std::vector<ValueRef> in, out;
  };

  int num_devices() const { return static_cast<int>(names_.size()); }
  int32_t device(int32_t node) const { return device_[node]; }
  DeviceId name(int32_t device) const { return names_[device]; }
  const std::vector<Reader>& readers(int32_t node) const {
    return readers_[node];
  }
  bool is_result(ValueRef v) const { return outputs_.contains(v); }
  bool can_run(int32_t node, int32_t device) const;

  // Bytes of a value when sent; 0 if unknown or never sent.
  int64_t bytes_of(ValueRef v) const;
  // Bytes sent for a value: once to each other device that reads it, and none
  // between CPU devices of one task, which share one memory. A result of the
  // function counts as read where its op was placed.
  int64_t sent(ValueRef v) const;
  int64_t sent(const Border& border) const;
  // Bytes sent if nodes[i] ran on devices[i].
  int64_t sent_if(const std::vector<int32_t>& nodes,
                  const std::vector<int32_t>& devices, const Border& border);
  // Results no longer count as read anywhere.
  void forget_results() { count_results_ = false; }

  Border border_of(const std::vector<int32_t>& sorted_nodes) const;
  // Devices on the other side of a border.
  std::vector<int32_t> neighbours(const Border& border) const;
  double flops(const std::vector<int32_t>& nodes) const;

 private:
  std::vector<SpecView> input_specs(const Node& n) const;

  const Graph& graph_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<DeviceId> names_;            // per device
  std::vector<int32_t> memory_;            // per device; equal: one memory
  std::vector<const PlaceDevice*> given_;  // per device; null: hypothetical
  std::vector<int32_t> placed_;            // per node
  std::vector<int32_t> device_;            // as placed, or as in a trial
  std::set<ValueRef> outputs_;
  bool count_results_ = true;
};

}  // namespace berth

#endif  // BERTH_PLACE_TRAFFIC_H_
