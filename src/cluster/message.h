// Message: a text and tensors, sent from one task to another.

#ifndef BERTH_CLUSTER_MESSAGE_H_
#define BERTH_CLUSTER_MESSAGE_H_

#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::cluster {

struct Message {
  std::string text;  // its reader defines the format
  // In host memory, dense, row-major; dtypes and shapes are sent along. Strings
  // are allowed. Received tensors own their memory.
  std::vector<Tensor> tensors;
};

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_MESSAGE_H_
