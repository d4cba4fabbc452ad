#include "cli/planner/file_graph.h"

namespace berth {

void set_graph(PlanProblem& p, std::vector<std::vector<int32_t>> inputs,
               const std::vector<int64_t>& bytes) {
  SimulatedGraph& g = p.graph;
  const size_t n = inputs.size();
  for (size_t i = 0; i < n; ++i) {
    std::vector<int32_t>& reads = inputs[i];
    sort_unique(reads);
    const int32_t number = i;
    g.reads.add(reads);
    g.controls.add({});
    g.values.add(std::span(&number, 1));
    g.producer.push_back(number);
    p.costs.bytes.add(std::span(&bytes[i], 1));
    p.group.push_back(number);
  }
  g.kind.assign(n, SimulatedGraph::Kind::kOp);
  g.everywhere.assign(n, 0);
  g.lives_on.assign(n, 0);
  g.alias_of.assign(n, -1);
  g.variable_bytes.assign(n, 0);
  g.finish();
  p.num_groups = n;
  p.allowed.assign(n, ~DeviceSet{0});
  p.resident_bytes.assign(n, 0);
  p.backward.assign(n, 0);
  p.costs.workspace.assign(n * p.costs.classes.size(), 0);
}

}  // namespace berth
