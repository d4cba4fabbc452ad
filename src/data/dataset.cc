// The handles: Dataset's queries and Iterator.

#include "berth/data.h"
#include "data/node.h"

namespace berth::data {

struct Iterator::State {
  explicit State(const Dataset& d)
      : dataset(d),
        stream(dataset.node().open({stop.get_token(), /*peek=*/false})) {}
  ~State() { stop.request_stop(); }

  Dataset dataset;  // keeps the nodes that the streams refer to
  std::stop_source stop;
  std::unique_ptr<ElementStream> stream;  // null at the end
  std::optional<Failure> failure;
};

Iterator::Iterator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Iterator::Iterator(Iterator&&) noexcept = default;
Iterator& Iterator::operator=(Iterator&&) noexcept = default;
Iterator::~Iterator() = default;

bool Iterator::next(Tensors& element) {
  State& s = *state_;
  if (s.failure) s.failure->raise();
  if (s.stream == nullptr) return false;
  try {
    if (s.stream->next(&element)) return true;
  } catch (...) {
    s.failure = Failure::current();
    s.stop.request_stop();
    s.stream.reset();
    throw;
  }
  s.stream.reset();
  element.clear();
  return false;
}

std::optional<Tensors> Iterator::next() {
  Tensors element;
  if (!next(element)) return std::nullopt;
  return element;
}

Iterator Dataset::make_iterator() const {
  return Iterator(std::make_unique<Iterator::State>(*this));
}

int64_t Dataset::cardinality() const { return node_->cardinality(); }

const std::vector<TensorSpec>& Dataset::element_spec() const {
  return node_->specs();
}

}  // namespace berth::data
