// The whole public surface of Berth.

#ifndef BERTH_BERTH_H_
#define BERTH_BERTH_H_

#include "berth/config.h"
#include "berth/data.h"
#include "berth/debugging.h"
#include "berth/device.h"
#include "berth/distribute.h"
#include "berth/dtype.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/keras.h"
#include "berth/ops/aliases.h"
#include "berth/ops/array.h"
#include "berth/ops/bitwise.h"
#include "berth/ops/clip.h"
#include "berth/ops/contract.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/conv3d.h"
#include "berth/ops/indexing.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "berth/ops/recurrent.h"
#include "berth/placement.h"
#include "berth/placement_policy.h"
#include "berth/shape.h"
#include "berth/site.h"
#include "berth/tensor.h"
#include "berth/train.h"
#include "berth/variable.h"

#endif  // BERTH_BERTH_H_
