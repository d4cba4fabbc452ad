// recurrent: all steps of a recurrent layer as one op.
//
// keras::LSTM uses it (keras/recurrent_layers.h). Any thread.

#ifndef BERTH_OPS_RECURRENT_H_
#define BERTH_OPS_RECURRENT_H_

#include "berth/site.h"
#include "berth/tensor.h"

namespace berth::nn {

struct LstmResult {
  Tensor outputs;    // h of each step [batch, time, units]
  Tensor last_cell;  // c after the last step [batch, units]
};

// Runs an LSTM (Hochreiter and Schmidhuber 1997) over a sequence:
//   i, f, g, o = parts of the step + h kernel
//   c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)
// from the states h, c [batch, units]. parts [batch, time, 4 units] are the
// inputs' products with their kernel, bias added; kernel [units, 4 units]. A
// step where `mask` (bool [batch, time]; empty: none) is false leaves h and c
// unchanged. Has first derivatives only: a second one throws
// errors::Unimplemented.
LstmResult lstm(const Tensor& parts, const Tensor& kernel, const Tensor& h,
                const Tensor& c, const Tensor& mask = {},
                Site site = Site::here());

}  // namespace berth::nn

#endif  // BERTH_OPS_RECURRENT_H_
