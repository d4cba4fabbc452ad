// Dataset::from_generator.

#include <fmt/format.h>

#include "base/where.h"
#include "data/pass_state.h"
#include "data/user_call.h"

namespace berth::data {

namespace {

class GeneratorNode : public Node {
 public:
  GeneratorNode(GeneratorFactory factory, std::vector<TensorSpec> specs,
                Site site)
      : Node("from_generator", site),
        factory_(std::move(factory)),
        specs_(std::move(specs)) {
    Names names;
    for (TensorSpec& spec : specs_)
      names.push_back(std::exchange(spec.name, {}));
    for (const std::string& name : names)
      if (name.empty()) return;
    names_ = std::make_shared<const Names>(std::move(names));
  }
  std::unique_ptr<ElementStream> elements(const PassInfo& pass) const override;
  int64_t cardinality() const override { return kUnknown; }
  const std::vector<TensorSpec>& specs() const override { return specs_; }
  NamesRef names() const override { return names_; }

  Generator start() const {
    return call_user(*this, 0, [&] {
      Generator generator = factory_();
      if (!generator) {
        throw errors::InvalidArgument(
            "the factory returned an empty function; expected a generator");
      }
      return generator;
    });
  }

  // Throws unless `element` fits the specs.
  void check(const Tensors& element) const {
    if (element.size() != specs_.size()) {
      throw errors::InvalidArgument(
          fmt::format("the generator returned {} components; expected {}",
                      element.size(), specs_.size()));
    }
    for (size_t i = 0; i < specs_.size(); ++i) {
      const Tensor& t = element[i];
      if (!t.defined() || t.is_symbolic() || t.dtype() != specs_[i].dtype ||
          !t.shape().compatible_with(specs_[i].shape)) {
        throw errors::InvalidArgument(fmt::format(
            "component {} is {}; expected {} as from_generator was told", i,
            !t.defined()      ? "an empty Tensor"
            : t.is_symbolic() ? "a tensor of a traced function"
                              : t.spec().str(),
            specs_[i].str()));
      }
    }
  }

 private:
  GeneratorFactory factory_;
  std::vector<TensorSpec> specs_;
  NamesRef names_;
};

class GeneratorStream : public ElementStream {
 public:
  GeneratorStream(const GeneratorNode* node, std::stop_token stop)
      : node_(node), stop_(std::move(stop)) {}
  bool next(Tensors* out) override {
    for (; replay_ > 0; --replay_) {
      if (stopped(stop_) || !produce(out)) return false;
    }
    return produce(out);
  }
  // What a generator knows is its own: it is called as often as before.
  void state(PassState& s) override {
    s.begin(*node_);
    int64_t calls = number_ + replay_;
    s(calls);
    if (s.restoring()) replay_ = calls;
    s(ended_);
  }

 private:
  // A generator that has ended or thrown is not called again.
  bool produce(Tensors* out) {
    if (ended_) return false;
    ended_ = true;
    // The factory runs where and when the elements are made.
    if (!generator_) generator_ = node_->start();
    const bool any = call_user(*node_, number_, [&] {
      std::optional<Tensors> element = generator_();
      if (!element) return false;
      node_->check(*element);
      *out = std::move(*element);
      return true;
    });
    number_ += any;
    ended_ = !any;
    return any;
  }

  const GeneratorNode* node_;
  std::stop_token stop_;
  Generator generator_;
  int64_t number_ = 0;  // of the next element
  int64_t replay_ = 0;  // elements to leave out after a restore
  bool ended_ = false;
};

std::unique_ptr<ElementStream> GeneratorNode::elements(
    const PassInfo& pass) const {
  return std::make_unique<GeneratorStream>(this, pass.stop);
}

}  // namespace

Dataset Dataset::from_generator(GeneratorFactory factory,
                                std::vector<TensorSpec> specs, Site site) {
  const std::string where = call_text("from_generator", site);
  if (!factory) refuse(where, "the factory is empty; expected a function");
  if (specs.empty()) {
    refuse(where, "no specs were given; expected one per component");
  }
  return make_dataset<GeneratorNode>(std::move(factory), std::move(specs),
                                     site);
}

}  // namespace berth::data
