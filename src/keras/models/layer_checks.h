// Checks that layers share. Throw errors::InvalidArgument naming the layer.

#ifndef BERTH_KERAS_LAYERS_LAYER_UTIL_H_
#define BERTH_KERAS_LAYERS_LAYER_UTIL_H_

#include <string>

#include "berth/keras/volume_layers.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

// Returns the input of a layer that takes one.
const Tensor& one_input(const LayerState& s, const Tensors& x);

// Returns the only input, of `rank` dimensions; `form` says which.
const Tensor& input_of_rank(const LayerState& s, const Tensors& x, int rank,
                            const char* form);

// Returns how an input of so many axes of pixels, 1 to 3, is written.
const char* pixels_form(int dims);

// Returns the length of the last axis, which must be known and there.
int64_t known_channels(const LayerState& s, const Shape& input);

// Fails unless the last axis of `x` has the `channels` of the first call.
void check_channels(const LayerState& s, const Tensor& x, int64_t channels);

// Fails unless `value` is at least 1.
void check_positive(const LayerState& s, const char* what, int64_t value);

// Returns "SAME" or "VALID" for Keras' spelling.
std::string padding_of(const LayerState& s, const std::string& padding);

// Returns the dtype of what is told or drawn beside `x` where ops give none of
// 16 bits: parameters of norms, normal numbers. Then it is float32.
DType weights_dtype_for(const Tensor& x);

void check_activation(const LayerState& s, const std::string& name);

// False when the known dimensions together have 2^62 bytes or more, which
// nothing can hold.
bool can_be(const Shape& shape, DType dtype);

// The lengths of a size along its axes.
inline std::vector<int64_t> lengths_of(int64_t s) { return {s}; }
inline std::vector<int64_t> lengths_of(Size2D s) { return {s.h, s.w}; }
inline std::vector<int64_t> lengths_of(Size3D s) { return {s.d, s.h, s.w}; }

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_LAYER_UTIL_H_
