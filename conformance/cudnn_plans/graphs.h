// The graphs that models and the conformance suite ask cuDNN for. Tests only.

#ifndef BERTH_CONFORMANCE_CUDNN_PLANS_GRAPHS_H_
#define BERTH_CONFORMANCE_CUDNN_PLANS_GRAPHS_H_

#include <string>
#include <vector>

#include "backends/cudnn/cudnn_api.h"
#include "berth/dtype.h"

namespace berth::conformance {

struct NamedGraph {
  std::string name;
  BerthCudnnGraph graph;
};

// Every convolution, batch norm and attention of the suite that the CUDA
// plug-in hands to a library.
std::vector<NamedGraph> suite_graphs();
// ResNet-50 on images of 224 x 224: convolutions with both gradients and batch
// norms with theirs, each shape once.
std::vector<NamedGraph> resnet50_graphs(int64_t batch, BerthCudnnType type);
// A convolution with what may follow it, a batch norm with what may.
std::vector<NamedGraph> fused_graphs(BerthCudnnType type);
// Attention of 12 heads of 64, with its gradient, causal and not, as the CUDA
// plug-in hands it to a library; empty where it does not.
std::vector<NamedGraph> attention_graphs(int64_t batch, int64_t length,
                                         DType dtype);
// Its gradient in float32, which the plug-in does not ask for.
std::vector<NamedGraph> wide_attention_gradients(int64_t batch, int64_t length);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_CUDNN_PLANS_GRAPHS_H_
