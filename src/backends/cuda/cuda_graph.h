// A recording of a CudaQueue: an executable graph.

#ifndef BERTH_BACKENDS_CUDA_CUDA_GRAPH_H_
#define BERTH_BACKENDS_CUDA_CUDA_GRAPH_H_

#include <memory>

#include "backends/cuda/cuda_card.h"
#include "backends/gpu/card.h"

namespace berth::cuda {

// Makes `captured`, which it takes, executable: by updating `old`, a recording
// of this kind or null, where the driver can. Throws the driver's error.
std::unique_ptr<gpu::Recording> make_graph(CudaCard& card, CUgraph captured,
                                           std::unique_ptr<gpu::Recording> old);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUDA_GRAPH_H_
