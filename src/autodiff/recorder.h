// Recorder: the dispatcher behind a GradientTape.
//
// Passes each op on, and keeps those that read a watched value: op, attributes
// and handles of inputs and outputs. One thread, but for end().

#ifndef BERTH_AUTODIFF_RECORDER_H_
#define BERTH_AUTODIFF_RECORDER_H_

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "autodiff/tape_slots.h"
#include "berth/gradient_tape.h"
#include "op/dispatcher.h"
#include "op/op_def.h"

namespace berth {

class GradientTape::Recorder final : public Dispatcher {
 public:
  Recorder(TapeOptions options, Site site);
  ~Recorder() override;

  // Ends a recorder on any thread. Where it records on another one, which
  // lives, it stays in that thread's list and passes ops on.
  static void end(std::unique_ptr<Recorder> recorder);
  // Throws errors::FailedPrecondition on a thread that does not own the tape.
  void check_thread(const char* call) const;

  void apply(const OpDef& op, std::span<const Tensor* const> in,
             const Attrs* attrs, std::span<Tensor> out) override;

  void watch(const Tensor& t);
  void stop() { pop(); }
  void set_persistent(bool persistent) {
    options_.persistent = persistent;
    used_ = false;
  }
  void resume() {
    if (!pushed()) push();
  }
  Tensors gradient(const Tensors& targets, const std::vector<Source>& sources,
                   const GradientOptions& options);

 private:
  struct Node {
    const OpDef* op;
    AttrsRef attrs;
    Site site;
    const char* layer;
    uint32_t first_tensor;  // inputs, then outputs
    uint32_t first_value;   // ids of inputs, then outputs; kUnwatched
    uint16_t num_in, num_out;
  };
  // True while the thread lives; every recorder that it makes has the same.
  using ThreadLife = std::shared_ptr<std::atomic<bool>>;
  static const ThreadLife& this_thread();
  void forget();

  // Where the gradient computation of one call runs.
  class Placement;
  static constexpr int32_t kUnwatched = -1;

  // A mirror is its home: what replicas add to its gradient is summed there.
  int32_t value_of(const Tensor& t) const {
    if (!t.defined()) return kUnwatched;
    if (t.impl()->kind != TensorKind::kVariable) [[likely]]
      return slots_.find(t.impl());
    return slots_.find(with_home(t).impl());
  }
  // `t`, or the home of the mirror that it is.
  static Tensor with_home(const Tensor& t);
  static bool is_counted_elsewhere(const std::vector<Source>& sources,
                                   size_t at);
  void apply_control(const OpDef& op, std::span<const Tensor* const> in,
                     const Attrs* attrs, std::span<Tensor> out);
  void record(const OpDef& op, std::span<const Tensor* const> in,
              const Attrs* attrs, std::span<const Tensor> out);
  // Marks the values that depend on a source.
  std::vector<bool> reach(const std::vector<int32_t>& sources) const;
  void back(const Node& node, const std::vector<bool>& reached,
            const std::vector<bool>& is_source,
            std::vector<Tensor>* grads) const;
  void accumulate(Tensor* slot, Tensor grad, const Tensor& value) const;
  void lint_local_mean(const Tensor& target) const;

  TapeOptions options_;
  const Site site_;          // of the tape
  const ThreadLife thread_;  // that owns it
  std::atomic<bool> abandoned_{false};
  const uint64_t scope_serial_;
  bool used_ = false;
  TapeSlots slots_;
  std::vector<Node> nodes_;
  std::vector<Tensor> tensors_;
  std::vector<int32_t> values_;  // per node: its inputs' and outputs' ids
  std::vector<Tensor> watched_;  // keeps watched tensors alive
  int32_t num_values_ = 0;
};

}  // namespace berth

#endif  // BERTH_AUTODIFF_RECORDER_H_
