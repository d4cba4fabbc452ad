// Message: what one task sends another, a text and tensors.

#ifndef BERTH_CLUSTER_MESSAGE_H_
#define BERTH_CLUSTER_MESSAGE_H_

#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::cluster {

struct Message {
  std::string text;  // whoever reads it defines its form
  // In host memory, dense, row-major; dtypes and shapes travel with them.
  // Strings too. Those that arrive own their memory.
  std::vector<Tensor> tensors;
};

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_MESSAGE_H_
