#include "function/abstract_call.h"

#include "graph/tracer.h"

namespace berth {

std::vector<TensorSpec> abstract_call(
    const std::function<Tensors(const Tensors&)>& fn,
    const std::vector<TensorSpec>& args) {
  const DispatchGuard outside(nullptr);
  const int32_t follows = t_state.follows;
  struct Restore {
    int32_t follows;
    ~Restore() { t_state.follows = follows; }
  } restore{follows};
  t_state.follows = -1;
  Tracer tracer("abstract");
  Tensors in;
  for (const TensorSpec& spec : args) in.push_back(tracer.add_arg(spec));
  tracer.start();
  const Tensors results = fn(in);
  tracer.stop();
  std::vector<TensorSpec> specs;
  for (const Tensor& t : results) {
    TensorSpec spec = t.spec();
    for (int i = 0; i < spec.shape.rank(); ++i) {
      if (spec.shape[i] < 0) spec.shape[i] = kUnknownDim;
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace berth
