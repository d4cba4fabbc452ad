// Undecided: an AutoStrategy before it has chosen.
//
// Keeps what the choice needs: the layers that the model calls, and the
// variables that were made, which wait on the host. Thread-safe.

#ifndef BERTH_DISTRIBUTE_STRATEGY_UNDECIDED_H_
#define BERTH_DISTRIBUTE_STRATEGY_UNDECIDED_H_

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "berth/auto_strategy.h"
#include "berth/tensor.h"
#include "graph/graph.h"
#include "op/device_scope.h"

namespace berth::distribute {

class Undecided {
 public:
  Undecided(const AutoStrategyOptions& given, Site asked)
      : options(given), site(asked) {}

  struct Adopted {
    Tensor handle;
    bool engine = false;  // made by an optimizer, for another
    Tensor owner = {};    // that other variable, once note_updates() knows
  };

  const AutoStrategyOptions options;
  const Site site;

  // Returns the host. Throws errors::InvalidArgument in a device scope of the
  // user.
  Device& home(const DeviceScope* scope) const;
  // Throws errors::Unimplemented for one that synchronises on reading.
  void adopt(const Tensor& handle, bool engine) const;
  // Says by the updates of a training step what an optimizer made for which
  // variable.
  void note_updates(const Graph& step) const;
  void note_layer(const std::string& path);

  // In the order in which they were called.
  std::vector<std::string> paths() const;
  std::vector<Adopted> adopted() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> seen_;
  std::vector<std::string> paths_;
  mutable std::vector<Adopted> adopted_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_UNDECIDED_H_
