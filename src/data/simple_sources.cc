// Sources without files: from_tensors, counter, random.

#include <fmt/format.h>

#include "base/rng.h"
#include "base/where.h"
#include "berth/ops/array.h"
#include "data/pass_state.h"
#include "data/seeded_passes.h"
#include "data/stack.h"

namespace berth::data {

namespace {

constexpr uint32_t kRandomOp = 0x2A11D077u;

// Makes element number i of a pass.
class GeneratedNode : public Node {
 public:
  GeneratedNode(const char* what, Site site, std::vector<TensorSpec> specs)
      : Node(what, site), specs_(std::move(specs)) {}
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  const std::vector<TensorSpec>& specs() const override { return specs_; }

  virtual NodeMemory begin(const PassInfo&) const { return {}; }
  virtual void make(const NodeMemory& pass, uint64_t i, Tensors* out) const = 0;

 private:
  std::vector<TensorSpec> specs_;
};

class GeneratedStream : public ElementStream {
 public:
  GeneratedStream(const GeneratedNode& node, const PassInfo& pass)
      : node_(node), pass_(node.begin(pass)) {}
  bool next(Tensors* out) override {
    if (number_ == node_.cardinality()) return false;
    node_.make(pass_, static_cast<uint64_t>(number_++), out);
    return true;
  }
  void state(PassState& s) override {
    s.begin(node_);
    s(pass_);
    s(number_);
  }

 private:
  const GeneratedNode& node_;
  NodeMemory pass_;
  int64_t number_ = 0;  // of the next element
};

std::unique_ptr<ElementStream> GeneratedNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<GeneratedStream>(*this, pass);
}

class CounterNode : public GeneratedNode {
 public:
  CounterNode(int64_t start, int64_t step, Site site)
      : GeneratedNode("counter", site, {{Shape{}, int64, {}}}),
        start_(start),
        step_(step) {}
  int64_t cardinality() const override { return kInfinite; }
  // Wraps as unsigned numbers do.
  void make(const NodeMemory&, uint64_t i, Tensors* out) const override {
    *out = {int64_scalar(static_cast<int64_t>(
        static_cast<uint64_t>(start_) + static_cast<uint64_t>(step_) * i))};
  }

 private:
  int64_t start_, step_;
};

class RandomNode : public GeneratedNode {
 public:
  RandomNode(const RandomOptions& options, Site site)
      : GeneratedNode("random", site, {{Shape{}, int64, {}}}),
        passes_(options.seed, options.rerandomize_each_iteration) {}
  int64_t cardinality() const override { return kInfinite; }
  NodeMemory begin(const PassInfo& pass) const override {
    return passes_.begin(pass);
  }
  NodeMemory memory() const override { return passes_.memory(); }
  void set_memory(const NodeMemory& m) const override { passes_.set(m); }
  void make(const NodeMemory& pass, uint64_t i, Tensors* out) const override {
    const RandomStream words(static_cast<uint64_t>(pass.seed), kRandomOp,
                             static_cast<uint64_t>(pass.passes));
    *out = {int64_scalar(words.word(i))};
  }

 private:
  SeededPasses passes_;
};

}  // namespace

Dataset Dataset::from_tensors(const Tensors& components, Site site) {
  const std::string where = call_text("from_tensors", site);
  if (components.empty()) {
    refuse(where, "no components were given; expected at least one tensor");
  }
  Tensors rows;  // the one row of each
  for (const Tensor& t : components) {
    if (!t.defined() || t.is_symbolic() || t.dtype() == resource) {
      refuse(where, fmt::format("component {} is {}; expected a tensor with "
                                "values",
                                rows.size(),
                                !t.defined()      ? "an empty Tensor"
                                : t.is_symbolic() ? "part of a traced function"
                                                  : "a Variable's handle"));
    }
    rows.push_back(expand_dims(t, 0, site));
  }
  return from_tensor_slices(rows, site);
}

Dataset Dataset::counter(int64_t start, int64_t step, Site site) {
  return make_dataset<CounterNode>(start, step, site);
}

Dataset Dataset::random(const RandomOptions& options, Site site) {
  return make_dataset<RandomNode>(options, site);
}

}  // namespace berth::data
