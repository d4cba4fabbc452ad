#include "function/trace_call.h"

#include "function/traced_text.h"
#include "graph/tracer.h"
#include "op/contract_scope.h"
#include "passes/pipeline.h"

namespace berth {

Graph trace_call(const std::string& name,
                 const std::function<Tensors(const Tensors&)>& fn,
                 const std::vector<TensorSpec>& args) {
  const DispatchGuard outside(nullptr);
  const ContractsSwap no_contracts(nullptr);
  const int32_t follows = t_state.follows;
  const char* const layer = t_state.layer;
  struct Restore {
    int32_t follows;
    const char* layer;
    ~Restore() {
      t_state.follows = follows;
      t_state.layer = layer;
    }
  } restore{follows, layer};
  t_state.follows = -1;
  t_state.layer = nullptr;
  Tracer tracer(name);
  Tensors in;
  for (const TensorSpec& spec : args) in.push_back(tracer.add_arg(spec));
  tracer.start();
  const Tensors results = fn(in);
  return tracer.finish(results);
}

std::string traced_text(const std::string& name,
                        const std::function<Tensors(const Tensors&)>& fn,
                        const std::vector<TensorSpec>& args,
                        const std::string& stage) {
  Graph graph = trace_call(name, fn, args);
  if (stage == "optimize") run_device_free_passes(graph);
  return print(graph);
}

}  // namespace berth
