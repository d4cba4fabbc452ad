// GradientTape: records operations, then differentiates them in reverse
// (tf.GradientTape).
//
// A tape observes every op that runs on the constructing thread from its
// construction until stop(), its first gradient() (unless persistent) or its
// destruction, and that has a watched tensor among its inputs. Trainable
// Variables are watched when they are read. Works the same in eager code and
// inside a traced function.
//
// The thread that makes a tape owns it: watch(), stop() and gradient() on
// another one throw errors::FailedPrecondition. A tape that ends on another
// thread while it records is abandoned, with a warning (`tape-thread`). Tapes
// nest and may close in any order; an inner tape's gradient computation is
// itself recorded by an outer one.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_GRADIENT_TAPE_H_
#define BERTH_GRADIENT_TAPE_H_

#include <concepts>
#include <memory>
#include <string>
#include <vector>

#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth {

struct TapeOptions {
  bool persistent = false;  // Allow gradient() more than once.
  bool watch_accessed_variables = true;
};

// The value of gradient() for a source that the target does not depend on.
enum class UnconnectedGradients { kNone, kZero };

struct GradientOptions {
  // Pins the gradient computation. By default gradients run where their forward
  // op ran; a berth::device scope opened after the tape pins too.
  std::string device = {};
  // d(loss)/d(target), [shape of target]; ones when empty.
  Tensor output_grad = {};
  // One per target of several; empty ones count as ones.
  Tensors output_grads = {};
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::kNone;
};

// A variable or tensor to differentiate with respect to.
class Source {
 public:
  Source(const Tensor& t) : tensor_(t) {}             // NOLINT: {x, w}
  Source(const Variable& v) : tensor_(v.handle()) {}  // NOLINT
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

template <class T>
concept SingleSource = std::same_as<T, Tensor> || std::same_as<T, Variable>;

// Example:
//   GradientTape tape;
//   tape.watch(x);
//   Tensor y = math::square(x);
//   Tensor dx = tape.gradient(y, x);
class GradientTape {
 public:
  explicit GradientTape(TapeOptions options = {}, Site site = Site::here());
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // Starts recording ops that read `x`.
  // Throws errors::InvalidArgument unless the dtype is floating.
  void watch(const Tensor& x, Site site = Site::here());
  void watch(const Variable& v, Site site = Site::here());

  // Stops recording; earlier records stay.
  void stop(Site site = Site::here());
  // Allows gradient() more than once from now on, or once more.
  void set_persistent(bool persistent);
  // Records again after stop().
  void resume(Site site = Site::here());

  // Returns d(sum(target))/d(source) for each source, with the shape, dtype
  // and device of the source; an empty Tensor where target does not depend on
  // it. Throws errors::FailedPrecondition on a second call of a tape that is
  // not persistent, errors::InvalidArgument for a target that is not floating.
  Tensors gradient(const Tensor& target, const std::vector<Source>& sources,
                   const GradientOptions& options = {},
                   Site site = Site::here());
  Tensors gradient(const Tensor& target, const std::vector<Variable>& sources,
                   const GradientOptions& options = {},
                   Site site = Site::here()) {
    return gradient(target, std::vector<Source>(sources.begin(), sources.end()),
                    options, site);
  }
  // The gradient of the sum of several targets.
  Tensors gradient(const Tensors& targets, const std::vector<Source>& sources,
                   const GradientOptions& options = {},
                   Site site = Site::here());
  template <SingleSource T>
  Tensor gradient(const Tensor& target, const T& source,
                  const GradientOptions& options = {},
                  Site site = Site::here()) {
    return gradient(target, std::vector<Source>{source}, options, site)[0];
  }

 private:
  class Recorder;
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace berth

#endif  // BERTH_GRADIENT_TAPE_H_
