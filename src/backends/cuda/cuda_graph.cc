#include "backends/cuda/cuda_graph.h"

#include "backends/cuda/cuda_queue.h"

namespace berth::cuda {

namespace {

class CudaGraph final : public gpu::Recording {
 public:
  CudaGraph(CudaCard& card, CUgraph captured) : card_(card) {
    card.call(card.driver().cuGraphInstantiate, &graph_, captured, 0ull);
  }
  // Waits for running launches.
  ~CudaGraph() override {
    card_.attempt(card_.driver().cuGraphExecDestroy, graph_);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  // Returns false when the driver cannot; then this graph is of no further use.
  bool update(CUgraph captured) {
    CUgraphExecUpdateResultInfo info = {};
    const auto& call = card_.driver().cuGraphExecUpdate;
    const CUresult error = card_.result(call, graph_, captured, &info);
    if (is_lasting(error)) card_.check(error, call.name);
    return error == CUDA_SUCCESS;
  }

  void launch(gpu::Queue& queue) override {
    card_.call(card_.driver().cuGraphLaunch, graph_,
               static_cast<CudaQueue&>(queue).appending());
  }

 private:
  CudaCard& card_;
  CUgraphExec graph_ = nullptr;
};

}  // namespace

std::unique_ptr<gpu::Recording> make_graph(
    CudaCard& card, CUgraph captured, std::unique_ptr<gpu::Recording> old) {
  struct Captured {
    CudaCard& card;
    CUgraph graph;
    ~Captured() { card.attempt(card.driver().cuGraphDestroy, graph); }
  } owner{card, captured};
  if (old && static_cast<CudaGraph&>(*old).update(captured)) return old;
  old.reset();
  return std::make_unique<CudaGraph>(card, captured);
}

}  // namespace berth::cuda
