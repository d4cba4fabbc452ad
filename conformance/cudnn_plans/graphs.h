// The graphs that models and the conformance suite ask cuDNN for. Tests only.

#ifndef BERTH_CONFORMANCE_CUDNN_PLANS_GRAPHS_H_
#define BERTH_CONFORMANCE_CUDNN_PLANS_GRAPHS_H_

#include <string>
#include <vector>

#include "backends/cudnn/cudnn_api.h"

namespace berth::conformance {

struct NamedGraph {
  std::string name;
  BerthCudnnGraph graph;
};

// Every convolution and batch norm of the suite that the CUDA plug-in hands to
// a library.
std::vector<NamedGraph> suite_graphs();
// ResNet-50 on images of 224 x 224: convolutions with both gradients and batch
// norms with theirs, each shape once.
std::vector<NamedGraph> resnet50_graphs(int64_t batch, BerthCudnnType type);
// A convolution with what may follow it, a batch norm with what may.
std::vector<NamedGraph> fused_graphs(BerthCudnnType type);
// Attention of 12 heads of 64, with its gradient, causal and not.
std::vector<NamedGraph> attention_graphs(int64_t batch, int64_t length,
                                         BerthCudnnType type);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_CUDNN_PLANS_GRAPHS_H_
