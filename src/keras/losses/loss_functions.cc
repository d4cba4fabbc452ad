// Losses as functions: one value per sample.

#include "berth/keras/losses.h"

namespace berth::keras::losses {

Tensor mean_squared_error(const Tensor& y, const Tensor& p) {
  return MeanSquaredError().per_sample(y, p);
}
Tensor mean_absolute_error(const Tensor& y, const Tensor& p) {
  return MeanAbsoluteError().per_sample(y, p);
}
Tensor mean_absolute_percentage_error(const Tensor& y, const Tensor& p) {
  return MeanAbsolutePercentageError().per_sample(y, p);
}
Tensor mean_squared_logarithmic_error(const Tensor& y, const Tensor& p) {
  return MeanSquaredLogarithmicError().per_sample(y, p);
}
Tensor log_cosh(const Tensor& y, const Tensor& p) {
  return LogCosh().per_sample(y, p);
}
Tensor hinge(const Tensor& y, const Tensor& p) {
  return Hinge().per_sample(y, p);
}
Tensor squared_hinge(const Tensor& y, const Tensor& p) {
  return SquaredHinge().per_sample(y, p);
}
Tensor categorical_hinge(const Tensor& y, const Tensor& p) {
  return CategoricalHinge().per_sample(y, p);
}
Tensor kl_divergence(const Tensor& y, const Tensor& p) {
  return KLDivergence().per_sample(y, p);
}
Tensor poisson(const Tensor& y, const Tensor& p) {
  return Poisson().per_sample(y, p);
}
Tensor huber(const Tensor& y, const Tensor& p, double delta) {
  return Huber({.delta = delta}).per_sample(y, p);
}
Tensor cosine_similarity(const Tensor& y, const Tensor& p, int64_t axis) {
  return CosineSimilarity({.axis = axis}).per_sample(y, p);
}
Tensor binary_crossentropy(const Tensor& y, const Tensor& p,
                           const CrossentropyOptions& o) {
  return BinaryCrossentropy(o).per_sample(y, p);
}
Tensor categorical_crossentropy(const Tensor& y, const Tensor& p,
                                const CrossentropyOptions& o) {
  return CategoricalCrossentropy(o).per_sample(y, p);
}
Tensor sparse_categorical_crossentropy(const Tensor& y, const Tensor& p,
                                       const CrossentropyOptions& o) {
  return SparseCategoricalCrossentropy(o).per_sample(y, p);
}
Tensor binary_focal_crossentropy(const Tensor& y, const Tensor& p,
                                 const BinaryFocalOptions& o) {
  return BinaryFocalCrossentropy(o).per_sample(y, p);
}
Tensor categorical_focal_crossentropy(const Tensor& y, const Tensor& p,
                                      const CategoricalFocalOptions& o) {
  return CategoricalFocalCrossentropy(o).per_sample(y, p);
}
Tensor categorical_generalized_cross_entropy(const Tensor& y, const Tensor& p,
                                             double q) {
  return CategoricalGeneralizedCrossEntropy(q).per_sample(y, p);
}
Tensor dice(const Tensor& y, const Tensor& p, const DiceOptions& o) {
  return Dice(o).per_sample(y, p);
}
Tensor tversky(const Tensor& y, const Tensor& p, const TverskyOptions& o) {
  return Tversky(o).per_sample(y, p);
}
Tensor circle(const Tensor& y, const Tensor& p, const CircleOptions& o) {
  return Circle(o).per_sample(y, p);
}

}  // namespace berth::keras::losses
