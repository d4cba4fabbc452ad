// StateHomes: variables of a step that could wait on the host.
//
// What one update writes (a weight and its optimizer's slots) goes together.
// Where it is on the host, its update runs there: the step sends the gradient,
// and reads the weight over the link. (Prior art: Ren et al., "ZeRO-Offload",
// 2021.) Plans are made with stand-ins that have no memory. One thread.

#ifndef BERTH_FUNCTION_STATE_HOMES_H_
#define BERTH_FUNCTION_STATE_HOMES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "device/device.h"
#include "graph/graph.h"

namespace berth {

// Other handles in place of those of variables, by their TensorImpl.
using HandleMap = std::map<const TensorImpl*, Tensor>;

// Puts them into the nodes of the graph and of its bodies.
void replace_handles(Graph& graph, const HandleMap& to);

class StateHomes {
 public:
  // Variables on `device`, and those that its memory had no room for, of which
  // neither a user nor another plan said where they are. At first all of them
  // are on the device.
  StateHomes(const Graph& graph, Device& device);

  // Moves to the host what is written together and lies on several devices,
  // since it was made where there was room.
  void unite() const;

  // Puts more on the host, until `bytes` of the device are free of it; when all
  // is there, a step is to stream them (stream_from_host()). False: it does.
  bool let_go(int64_t bytes);
  int64_t bytes_on_host() const;
  bool streams() const { return streams_; }

  // The graph with stand-ins where the variables will be, and back.
  Graph planned(const Graph& graph);
  void restore(Graph& graph) const;
  // Moves all of them to the host for now, so that they leave no holes. False:
  // they have left before, or there are none.
  bool leave();
  // Moves them to where they will be. What finds no room stays on the host.
  void move() const;

 private:
  struct Group {
    std::vector<Tensor> handles;
    int64_t bytes = 0;
    int64_t read_bytes = 0;  // which a step has on the device all the same
    bool on_host = false;
  };
  static void move_to(const Group& g, Device& to);

  Device& device_;
  std::vector<Group> groups_;  // in the order in which they go
  HandleMap stand_in_;
  bool streams_ = false, left_ = false;
};

}  // namespace berth

#endif  // BERTH_FUNCTION_STATE_HOMES_H_
