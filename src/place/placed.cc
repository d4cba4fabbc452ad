#include "place/placed.h"

namespace berth {

std::string body_path(const std::string& path, const Node& node,
                      const std::string& role) {
  return (path.empty() ? "" : path + "/") + node.name + "/" + role;
}

int32_t PlacedGraph::find(const std::string& name) const {
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph[i].name == name) return i;
  }
  for (int32_t i = 0; i < graph.size(); ++i) {
    for (const NodeSource& s : graph[i].sources) {
      if (s.name == name) return i;
    }
  }
  return -1;
}

}  // namespace berth
