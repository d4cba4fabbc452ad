#include <fmt/format.h>

#include "data/user_call.h"

namespace berth::data {

namespace {

class GeneratorNode : public Node {
 public:
  GeneratorNode(GeneratorFactory factory, std::vector<TensorSpec> specs,
                Site site)
      : Node("from_generator", site),
        factory_(std::move(factory)),
        specs_(std::move(specs)) {}
  std::unique_ptr<ElementStream> elements(const Pass& pass) const override;
  int64_t cardinality() const override { return kUnknown; }
  const std::vector<TensorSpec>& specs() const override { return specs_; }

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
};

class GeneratorStream : public ElementStream {
 public:
  explicit GeneratorStream(const GeneratorNode* node) : node_(node) {}
  bool next(Tensors* out) override {
    // The factory runs where and when the elements are made.
    if (!generator_) generator_ = node_->start();
    return call_user(*node_, number_++, [&] {
      std::optional<Tensors> element = generator_();
      if (!element) return false;
      node_->check(*element);
      *out = std::move(*element);
      return true;
    });
  }

 private:
  const GeneratorNode* node_;
  Generator generator_;
  int64_t number_ = 0;
};

std::unique_ptr<ElementStream> GeneratorNode::elements(const Pass&) const {
  return std::make_unique<GeneratorStream>(this);
}

}  // namespace

Dataset Dataset::from_generator(GeneratorFactory factory,
                                std::vector<TensorSpec> specs, Site site) {
  const std::string where =
      fmt::format("from_generator ({}:{})", site.file, site.line);
  if (!factory) refuse(where, "the factory is empty; expected a function");
  if (specs.empty()) {
    refuse(where, "no specs were given; expected one per component");
  }
  return make_dataset<GeneratorNode>(std::move(factory), std::move(specs),
                                     site);
}

}  // namespace berth::data
