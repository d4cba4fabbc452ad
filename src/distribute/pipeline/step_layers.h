// StepLayers: which layer and which pass of a training step a node belongs to.

#ifndef BERTH_DISTRIBUTE_PIPELINE_STEP_LAYERS_H_
#define BERTH_DISTRIBUTE_PIPELINE_STEP_LAYERS_H_

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace berth::distribute {

class StepLayers {
 public:
  // 'F' forward; of the backward pass 'I', what layers before wait for, and
  // 'W', the rest; 'U' what is done with gradients. layer -1: of none.
  struct Place {
    int32_t layer = -1;
    char pass = 'F';
  };

  // `paths`: the layers that the step calls, in order; those of the graph get
  // numbers.
  explicit StepLayers(std::vector<std::string> paths)
      : paths_(std::move(paths)) {}

  // By node.
  std::vector<Place> places(const Graph& step) const;
  const std::vector<std::string>& paths() const { return paths_; }

  // By layer: bytes of its values that the backward pass reads, and of values
  // that layers after it read.
  struct Values {
    std::vector<double> kept, sent;
  };
  Values values(const Graph& step, const std::vector<Place>& at,
                const std::function<int64_t(int32_t)>& bytes_of_node) const;

 private:
  std::vector<std::string> paths_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PIPELINE_STEP_LAYERS_H_
