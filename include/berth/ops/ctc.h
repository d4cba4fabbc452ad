// ctc: connectionist temporal classification (tf.nn.ctc_*).
//
// Logits are [time, batch, classes], with logits_time_major false [batch,
// time, classes]. The classes of a path without repeats and without the blank
// are its labels. The loss and the beam search run on host devices. All throw
// errors::InvalidArgument for shapes or labels that do not fit. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_CTC_H_
#define BERTH_OPS_CTC_H_

#include <cstdint>

#include "berth/tensor.h"

namespace berth::nn {

struct CtcLossOptions {
  bool logits_time_major = true;
  int64_t blank_index = 0;  // negative: from the number of classes down
};
// -log of the probability of labels [batch, most labels], whose lengths are
// label_length [batch], given the first logit_length [batch] logits: [batch];
// infinite where no path has them. Its gradient has no gradient.
Tensor ctc_loss(const Tensor& labels, const Tensor& logits,
                const Tensor& label_length, const Tensor& logit_length,
                const CtcLossOptions& options = {}, Site site = Site::here());

struct CtcGreedyOptions {
  bool merge_repeated = true;
  int64_t blank_index = -1;
};
struct CtcGreedy {
  Tensor decoded;         // int64 [batch, time], -1 after the labels
  Tensor neg_sum_logits;  // [batch, 1]
};
// The labels of the path of the largest logits [time, batch, classes].
CtcGreedy ctc_greedy_labels(const Tensor& inputs, const Tensor& sequence_length,
                            const CtcGreedyOptions& options = {},
                            Site site = Site::here());

struct CtcBeamOptions {
  int64_t beam_width = 100;
  int64_t top_paths = 1;
};
struct CtcBeam {
  Tensor decoded;  // int64 [top_paths, batch, time], -1 after the labels
  Tensor log_probability;  // [batch, top_paths]
};
// The most probable labels among beam_width beginnings; the blank is the last
// class.
CtcBeam ctc_beam_search_labels(const Tensor& inputs,
                               const Tensor& sequence_length,
                               const CtcBeamOptions& options = {},
                               Site site = Site::here());

}  // namespace berth::nn

#endif  // BERTH_OPS_CTC_H_
