#include "function/lint_graph.h"

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "place/lints.h"

namespace berth {

void lint_graph(const Graph& graph, const PlaceOptions& devices) {
  for (const PlaceLint& lint : lint_placement(graph, devices)) {
    const Node& n = graph[lint.node];
    const Site site = n.sources.empty() ? Site{} : n.sources[0].site;
    report_once(fmt::format("{}\n{}", graph.name, n.name),
                {lint.id, debugging::Severity::kLint,
                 fmt::format("{}: {}", graph.name, lint.text), site});
  }
}

}  // namespace berth
