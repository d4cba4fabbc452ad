// WeightLimit: how many bytes of weights the descriptions of a file may ask
// for.
//
// Acts on the thread that has it, while it lives: what a damaged or hostile
// file describes is refused before there is memory for it.

#ifndef BERTH_KERAS_MODELS_WEIGHT_LIMIT_H_
#define BERTH_KERAS_MODELS_WEIGHT_LIMIT_H_

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "berth/errors.h"
#include "berth/shape.h"
#include "keras/models/thread_state.h"

namespace berth::keras {

class WeightLimit {
 public:
  // `call`: what messages begin with; `path`: the file.
  WeightLimit(uint64_t bytes, std::string call, std::string path)
      : left_(bytes),
        call_(std::move(call)),
        path_(std::move(path)),
        outer_(std::exchange(keras_thread().limit, this)) {}
  ~WeightLimit() { keras_thread().limit = outer_; }
  WeightLimit(const WeightLimit&) = delete;
  WeightLimit& operator=(const WeightLimit&) = delete;

  // Called before a weight of float32 is made. Throws errors::DataLoss.
  static void take(const std::string& name, const Shape& shape) {
    if (keras_thread().limit == nullptr) return;
    uint64_t bytes = sizeof(float);
    bool fits = true;
    for (const int64_t d : shape) {
      fits = fits &&
             !__builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes);
    }
    if (fits && bytes <= keras_thread().limit->left_) {
      keras_thread().limit->left_ -= bytes;
      return;
    }
    throw errors::DataLoss(fmt::format(
        "{}: the model described in \"{}\" asks for weights that the file does "
        "not hold: \"{}\" would have shape {}, and {} bytes are left; copy or "
        "save the file again",
        keras_thread().limit->call_, keras_thread().limit->path_, name,
        shape.str(), keras_thread().limit->left_));
  }

 private:
  uint64_t left_;
  const std::string call_, path_;
  WeightLimit* const outer_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_WEIGHT_LIMIT_H_
