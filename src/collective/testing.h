// Hand-written steps of replicas, for the tests of this module and benchmarks.

#ifndef BERTH_COLLECTIVE_TESTING_H_
#define BERTH_COLLECTIVE_TESTING_H_

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/berth.h"
#include "collective/lower.h"
#include "exec/plan.h"
#include "function/graph_callable.h"
#include "function/place_bodies.h"
#include "graph/tracer.h"
#include "ops/op_call.h"
#include "passes/pipeline.h"

namespace berth::collective_tests {

// Rows [begin, begin + count) of a symbolic tensor.
inline Tensor rows(const Tensor& x, int64_t begin, int64_t count) {
  const AttrsRef attrs({{"begin", begin}, {"count", count}});
  return call1(op_named("_Rows"), x, attrs.get());
}

struct AllReduceOptions {
  std::string reduction = "sum";
  std::vector<int64_t> owners;    // empty: 0, 1, ...
  std::vector<int64_t> replicas;  // empty: {0}
  std::vector<int64_t> starts;
  std::string algorithm = "auto";
  int64_t pack_bytes = 0;
};

inline Tensors all_reduce(const Tensors& pieces, AllReduceOptions o = {}) {
  for (size_t i = 0; o.owners.size() < pieces.size(); ++i) {
    o.owners.push_back(static_cast<int64_t>(i));
  }
  if (o.replicas.empty()) o.replicas = {0};
  const AttrsRef attrs({{"reduction", o.reduction},
                        {"owners", o.owners},
                        {"replicas", o.replicas},
                        {"starts", o.starts},
                        {"algorithm", o.algorithm},
                        {"pack_bytes", o.pack_bytes}});
  return call_list(op_named("_AllReduce"), pieces, attrs.get());
}

inline std::string full_name(const std::string& type, int id) {
  return fmt::format("/job:localhost/replica:0/task:0/device:{}:{}", type, id);
}

// Traces `fn` over arguments; nodes that request a device belong to the replica
// of its number in `devices`, if there are several.
template <class Fn>
Graph trace(const std::vector<TensorSpec>& args,
            const std::vector<std::string>& devices, Fn&& fn) {
  Tracer tracer("step");
  Tensors values;
  for (const TensorSpec& s : args) values.push_back(tracer.add_arg(s));
  tracer.start();
  const Tensors results = fn(values);
  Graph graph = tracer.finish(results);
  for (Node& n : graph.nodes) {
    for (size_t d = 0; devices.size() > 1 && d < devices.size(); ++d) {
      if (n.requested == devices[d]) n.replica = static_cast<int32_t>(d);
    }
  }
  return graph;
}

inline Tensors call(GraphCallable& f, const Tensors& args) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : args) in.push_back(&t);
  Tensors out(f.output_specs().size());
  f.call(in, out);
  return out;
}

// Different numbers, on the host.
inline Tensor numbers(const Shape& shape, int seed) {
  std::vector<float> v(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = 0.01f * static_cast<float>((i * 37 + seed * 11) % 41) - 0.2f;
  }
  const auto on = device("/CPU:0");
  return constant(std::span<const float>(v), shape);
}

// Compiles a step of replicas, without costs.
inline std::unique_ptr<Plan> compile(Graph g) {
  run_device_free_passes(g);
  lower_collectives(g);
  verify(g);
  run_device_free_passes(g);
  place_all(g, real_devices(), true);
  return Plan::build(std::move(g), {});
}

}  // namespace berth::collective_tests

#endif  // BERTH_COLLECTIVE_TESTING_H_
