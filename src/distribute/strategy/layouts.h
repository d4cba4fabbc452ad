// Layouts: which variables of a ModelParallel are divided, along which axis.
//
// Immutable but for the keys that were used. Thread-safe.

#ifndef BERTH_DISTRIBUTE_STRATEGY_LAYOUTS_H_
#define BERTH_DISTRIBUTE_STRATEGY_LAYOUTS_H_

#include <atomic>
#include <deque>
#include <regex>
#include <string>
#include <vector>

#include "berth/model_parallel.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

class Layouts {
 public:
  // The devices of a mesh by replicas, which share batches.
  struct Grid {
    std::vector<std::string> devices;  // those of each replica in a row
    int replicas = 1;
  };
  // Throws errors::InvalidArgument.
  static Grid grid_of(const Mesh& mesh, const std::string& batch_dim_name,
                      Site site);

  // Throws errors::InvalidArgument (ModelParallel).
  Layouts(const LayoutMap& map, const ModelParallelOptions& options, Site site);

  // Units of each device, of sum(shares) in all.
  const std::vector<int>& shares() const { return shares_; }
  // The axis along which the variable is divided; -1: it is whole. Throws
  // errors::InvalidArgument for two layouts, and one that does not fit.
  int axis_of(const VariableState& v) const;
  // The axis that this layout of the variable divides; -1: none. Throws
  // errors::InvalidArgument for one that does not fit it or the mesh.
  int axis_of(const VariableState& v, const AxisNames& layout) const;
  // Throws errors::InvalidArgument if a key has matched no variable.
  void check_used() const;

 private:
  struct Entry {
    std::string key;
    std::regex pattern;
    AxisNames names;
    int axis = -1;
    mutable std::atomic<bool> used{false};
  };
  int divided_axis(const std::string& key, const AxisNames& names) const;
  void check_fits(const AxisNames& names, int axis,
                  const VariableState& v) const;

  const Mesh mesh_;
  const std::string batch_dim_name_;
  std::vector<int> shares_;
  std::deque<Entry> entries_;
  Site site_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_LAYOUTS_H_
