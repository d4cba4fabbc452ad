// Graph texts for the tests of this module: small ops and three devices.

#ifndef BERTH_PLACE_GRAPHS_TESTING_H_
#define BERTH_PLACE_GRAPHS_TESTING_H_

#include <fmt/format.h>

#include <exception>
#include <string>

#include "graph/graph_text.h"
#include "place/device_table.h"
#include "place/place.h"

namespace berth::place_tests {

// CpuOnly runs only on the CPU, NotGpu0 on GPU:1 and the CPU, Nowhere nowhere.
inline PlaceOptions gpus_and_cpu() {
  const auto gpu = [](const OpDef& op, DType) {
    return op.name() != "CpuOnly" && op.name() != "Nowhere" &&
           op.name() != "NotGpu0";
  };
  const auto gpu1 = [](const OpDef& op, DType) {
    return op.name() != "CpuOnly" && op.name() != "Nowhere";
  };
  const auto cpu = [](const OpDef& op, DType) {
    return op.name() != "Nowhere";
  };
  PlaceOptions options;
  options.devices = {
      {"/job:localhost/replica:0/task:0/device:GPU:0", nullptr, gpu},
      {"/job:localhost/replica:0/task:0/device:GPU:1", nullptr, gpu1},
      {"/job:localhost/replica:0/task:0/device:CPU:0", nullptr, cpu}};
  return options;
}

inline const char kHead[] = R"(berth-graph 1
op Make () -> (y)
op Draw () -> (y) random
op One (x: any) -> (y)
op Two (a: any, b: any) -> (y)
op Size2 (x: any) -> (y) metadata
op CpuOnly (x: any) -> (y)
op NotGpu0 (x: any) -> (y)
op Nowhere (x: any) -> (y)
op Both (a: resource write, b: resource write) -> ()
op Slot (v: resource write, m: resource write, g: any) -> ()
)";

inline std::string arg(const std::string& name, const std::string& more = "",
                       int index = 0) {
  return fmt::format(
      "node {} = _Arg() {{index = {}, dtype = float32, shape = shape[4]}} -> "
      "float32[4] {}\n",
      name, index, more);
}

inline std::string handle(const std::string& name,
                          const std::string& more = "") {
  return fmt::format(
      "node {0} = VarHandleOp() {{shared_name = \"{0}\", dtype = float32, "
      "shape = shape[4]}} -> resource(float32)[4] {1}\n",
      name, more);
}

inline std::string node(const std::string& name, const std::string& call,
                        const std::string& more = "") {
  return fmt::format("node {} = {} -> float32[4] {}\n", name, call, more);
}

inline std::string effect(const std::string& name, const std::string& call,
                          const std::string& more = "") {
  return fmt::format("node {} = {} {}\n", name, call, more);
}

struct Result {
  Graph graph;
  Placement placement;
  std::string text;
};

inline Result placed(const std::string& body,
                     const PlaceOptions& options = gpus_and_cpu()) {
  Result r;
  r.graph = parse_graph(kHead + body);
  r.placement = place(r.graph, options);
  for (const Node& n : r.graph.nodes) {
    r.text += n.name + " " + short_device(n.assigned) + "\n";
  }
  return r;
}

inline PlaceOptions strict() {
  PlaceOptions options = gpus_and_cpu();
  options.soft = config::SoftPlacement::kError;
  return options;
}

template <class Error>
std::string error_of(const std::string& body,
                     const PlaceOptions& options = strict()) {
  try {
    placed(body, options);
  } catch (const Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another error: ") + e.what();
  }
  return "no error";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace berth::place_tests

#endif  // BERTH_PLACE_GRAPHS_TESTING_H_
