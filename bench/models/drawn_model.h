// Models whose weights and batches follow from a rule that is easily written
// down again in another language: bench/peers/gpu_torch.py has the same, so
// both can be compared loss by loss. Variables are float32; a model computes in
// `compute`, to which weights are cast where they are used, but for those of
// norms; ops that the catalogue has in float32 only are float32, and follow by
// themselves once it has them.
//
// A model declares its weights when it is constructed, and has them after
// make(), on the device of the scope that is open then. Not thread-safe.

#ifndef BERTH_BENCH_MODELS_DRAWN_MODEL_H_
#define BERTH_BENCH_MODELS_DRAWN_MODEL_H_

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "bench/models/step_model.h"
#include "op/op_registry.h"

namespace berth_bench {

// Number i of sequence `id`: in [-1, 1), the same on every machine.
inline float drawn(uint32_t id, uint32_t i) {
  uint32_t x = (i + 1) * 2654435761u + (id + 1) * 2246822519u;
  x ^= x >> 16;
  x *= 73244475u;
  x ^= x >> 15;
  return static_cast<float>(x >> 8) * 0x1p-23f - 1.0f;
}

class DrawnModel : public StepModel {
 public:
  // Draws the weights, and `batches` batches. Once.
  virtual void make(int batches) = 0;

  // Counts all weights that train, also before make().
  int64_t declared_parameters() const {
    int64_t n = 0;
    for (const Declared& d : declared_) n += d.shape.num_elements();
    return n;
  }
  // Ops of the last trace that are not of the dtype that was asked for, since
  // the catalogue has them in float32 only.
  const std::set<std::string>& in_float32() const { return in_float32_; }
  // Examples of a batch.
  virtual int64_t batch() const = 0;

 protected:
  explicit DrawnModel(berth::DType compute) : compute_(compute) {}

  // Declares a weight of uniform numbers of this deviation, or of `fill`
  // when it is 0. Returns its number.
  size_t declare(const berth::Shape& shape, double deviation, double fill = 0) {
    declared_.push_back({shape, deviation, fill});
    return declared_.size() - 1;
  }

  // Makes what was declared, with `slots` slots each.
  void make_weights(int slots) {
    using namespace berth;
    slots_.resize(static_cast<size_t>(slots));
    for (size_t i = 0; i < declared_.size(); ++i) {
      const Declared& d = declared_[i];
      const Tensor value =
          d.deviation > 0
              ? numbers(static_cast<uint32_t>(i), d.shape,
                        static_cast<float>(d.deviation * std::sqrt(3.0)))
              : berth::fill(d.shape, d.fill);
      weights_.emplace_back(identity(value));
      for (auto& slot : slots_) slot.push_back(state(d.shape, 0));
    }
  }

  // [shape] numbers of sequence `id` times `scale`.
  static berth::Tensor numbers(uint32_t id, const berth::Shape& shape,
                               float scale) {
    std::vector<float> values(static_cast<size_t>(shape.num_elements()));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = scale * drawn(id, static_cast<uint32_t>(i));
    }
    return berth::identity(berth::constant(values, shape));
  }

  // [shape] whole numbers below `below`, a batch `which` of inputs or labels.
  static berth::Tensor whole(uint32_t id, const berth::Shape& shape,
                             int64_t below) {
    std::vector<int64_t> values(static_cast<size_t>(shape.num_elements()));
    for (size_t i = 0; i < values.size(); ++i) {
      const double share =
          (drawn(id, static_cast<uint32_t>(i)) + 1.0) * 0.5;  // exact
      values[i] = static_cast<int64_t>(share * static_cast<double>(below));
    }
    return berth::identity(berth::constant(values, shape));
  }
  // The sequences of batches, beyond those of weights.
  static uint32_t input_id(int batch) {
    return 100000 + 2 * static_cast<uint32_t>(batch);
  }
  static uint32_t label_id(int batch) { return input_id(batch) + 1; }

  // A value as `op` takes it: of the dtype that the model computes in, or of
  // float32 where the catalogue has the op in float32 only.
  berth::Tensor as(const char* op, const berth::Tensor& x) const {
    return to(takes(op) ? compute_ : berth::float32, x);
  }
  // Weight i as `op` takes it.
  berth::Tensor weight(const char* op, size_t i) const {
    return as(op, weights_[i]);
  }
  // Whether there is such an op, and it takes what the model computes in.
  bool takes(const char* op) const {
    const berth::OpDef* def = berth::OpRegistry::get().find(op);
    const bool does = def != nullptr &&
                      (def->input(0).types & berth::dtype_bit(compute_)) != 0;
    if (!does && def != nullptr) in_float32_.insert(op);
    return does;
  }
  static berth::Tensor to(berth::DType dtype, const berth::Tensor& x) {
    return x.dtype() == dtype ? x : berth::math::cast(x, dtype);
  }

  berth::DType compute_;

 private:
  struct Declared {
    berth::Shape shape;
    double deviation, fill;
  };
  std::vector<Declared> declared_;
  mutable std::set<std::string> in_float32_;
};

}  // namespace berth_bench

#endif  // BERTH_BENCH_MODELS_DRAWN_MODEL_H_
