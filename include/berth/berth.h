// The whole public surface of Berth.
//
// One rule for options: what is required is an argument; the rest is one
// struct, written by name in the order in which its header lists the fields,
// f(x, {.axis = 1, .keepdims = true}); what is left out has the default shown
// there.

#ifndef BERTH_BERTH_H_
#define BERTH_BERTH_H_

#include "berth/cluster.h"
#include "berth/config.h"
#include "berth/custom_gradient.h"
#include "berth/data.h"
#include "berth/data_element.h"
#include "berth/data_files.h"
#include "berth/data_options.h"
#include "berth/data_row.h"
#include "berth/debugging.h"
#include "berth/device.h"
#include "berth/distribute.h"
#include "berth/dtype.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/image.h"
#include "berth/image_boxes.h"
#include "berth/io.h"
#include "berth/keras.h"
#include "berth/multi_worker.h"
#include "berth/ops/adaptive.h"
#include "berth/ops/aliases.h"
#include "berth/ops/array.h"
#include "berth/ops/bitwise.h"
#include "berth/ops/clip.h"
#include "berth/ops/contract.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/conv3d.h"
#include "berth/ops/ctc.h"
#include "berth/ops/factor.h"
#include "berth/ops/indexing.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "berth/ops/recurrent.h"
#include "berth/ops/signal.h"
#include "berth/parameter_server.h"
#include "berth/pipeline.h"
#include "berth/placement.h"
#include "berth/placement_policy.h"
#include "berth/preemption.h"
#include "berth/profiler.h"
#include "berth/recompute_grad.h"
#include "berth/remote.h"
#include "berth/saved_function.h"
#include "berth/shape.h"
#include "berth/site.h"
#include "berth/strings.h"
#include "berth/tensor.h"
#include "berth/train.h"
#include "berth/variable.h"

#endif  // BERTH_BERTH_H_
