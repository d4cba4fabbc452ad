// The handles: Dataset's queries and Iterator.

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "base/where.h"
#include "berth/data.h"
#include "data/node.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

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

namespace {

// The scope changes nothing here: elements are host tensors, made by the
// host's threads. Who opened it around the loop expected something else.
void lint_scope(const Node& node, Site loop) {
  const DeviceScope* scope = t_state.scope;
  if (scope == nullptr || scope->kind != ScopeKind::kUser) return;
  const std::string type = scope->name.type.value_or("CPU");
  if (type == "CPU") return;
  const std::string where = where_text(nullptr, loop);
  report_once(
      where,
      {"dataset-in-device-scope", debugging::Severity::kLint,
       fmt::format("a dataset{} is iterated{} inside a scope of {}{}: batches "
                   "are made on the host all the same; open the scope inside "
                   "the loop, around the step",
                   where_text(nullptr, node.site()), where, scope->name.str(),
                   where_text(nullptr, scope->site)),
       loop});
}

}  // namespace

Dataset::iterator Dataset::begin(Site site) const {
  lint_scope(node(), site);
  return iterator(make_iterator());
}

int64_t Dataset::cardinality() const { return node_->cardinality(); }

const std::vector<TensorSpec>& Dataset::element_spec() const {
  return node_->specs();
}

}  // namespace berth::data
