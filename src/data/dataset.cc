// The handles: Dataset's queries and Iterator.

#include <fmt/format.h>

#include <thread>

#include "base/diagnostics.h"
#include "base/live_counts.h"
#include "base/timeline.h"
#include "base/where.h"
#include "berth/data.h"
#include "data/pass_state.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth::data {

struct Iterator::State {
  explicit State(const Dataset& d, bool restoring = false)
      : dataset(d),
        stream(dataset.node().open({.stop = stop.get_token(),
                                    .restoring = restoring,
                                    .counts = &counts})) {}
  // What is known of a pass whose streams are left behind.
  explicit State(State& left)
      : dataset(left.dataset),
        elements(left.elements),
        failure(left.failure),
        names(left.names),
        named(left.named) {
    counts.ignored = left.counts.ignored.load();
  }
  ~State() { stop.request_stop(); }

  Dataset dataset;  // keeps the nodes that the streams refer to
  std::stop_source stop;
  PassCounts counts;
  int64_t elements = 0;
  std::unique_ptr<ElementStream> stream;  // null at the end
  std::optional<PassError> failure;
  NamesRef names;
  bool named = false;  // `names` has been asked for
};

namespace {

// Who interrupts does not wait for a function of the user's, which threads of
// the pass may be in.
template <class State>
void leave_behind(std::unique_ptr<State> state) {
  std::thread([state = std::move(state)]() mutable { state.reset(); }).detach();
}

}  // namespace

Iterator::Iterator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Iterator::Iterator(Iterator&&) noexcept = default;
Iterator& Iterator::operator=(Iterator&&) noexcept = default;
Iterator::~Iterator() = default;

bool Iterator::next(Tensors& element) {
  State& s = *state_;
  if (s.failure) s.failure->raise();
  if (s.stream == nullptr) return false;
  const timeline::MaybeSpan span("input", "next element", "input");
  const live_counts::InputWait wait;
  try {
    if (s.stream->next(&element)) {
      ++s.elements;
      return true;
    }
  } catch (...) {
    s.failure = PassError::current();
    s.stop.request_stop();
    if (interrupt_of_call()->load()) {
      leave_behind(std::exchange(state_, std::make_unique<State>(s)));
    } else {
      s.stream.reset();
    }
    throw;
  }
  s.stream.reset();
  element.clear();
  return false;
}

bool Iterator::next_named(Element& element) {
  if (!next(static_cast<Tensors&>(element))) return false;
  State& s = *state_;
  // Known once there is an element.
  if (!s.named) {
    s.names = s.dataset.node().names();
    s.named = true;
  }
  if (element.shared_names() != s.names) element.set_names(s.names);
  return true;
}

std::optional<Element> Iterator::next() {
  Element element;
  if (!next_named(element)) return std::nullopt;
  return element;
}

IteratorStatus Iterator::status() const {
  State& s = *state_;
  IteratorStatus status{.elements = s.elements,
                        .ended = s.stream == nullptr,
                        .errors_ignored = s.counts.ignored};
  std::lock_guard lock(s.counts.mutex);
  status.last_error = s.failure ? s.failure->message : s.counts.last_error;
  return status;
}

IteratorState Iterator::save() {
  State& s = *state_;
  const Node& node = s.dataset.node();
  if (s.failure) {
    PassWriter::cannot(node, "it ended with an error: " + s.failure->message);
  }
  PassWriter writer;
  writer.put_memory(node, [&] {
    writer.put(s.elements);
    save_source(writer, s.stream);
  });
  return writer.finish();
}

void Iterator::restore(const IteratorState& saved) {
  const Dataset dataset = state_->dataset;
  const Node& node = dataset.node();
  PassReader reader(saved);
  // Its threads may begin passes: they end before these are counted.
  state_->stop.request_stop();
  state_->stream.reset();
  PassWriter before;
  before.put_memory(node, [] {});
  const IteratorState memory = before.finish();
  try {
    auto fresh = std::make_unique<State>(dataset, /*restoring=*/true);
    reader.memory(node);
    fresh->elements = reader.number(0);
    restore_source(reader, &fresh->stream);
    reader.finish();
    state_ = std::move(fresh);
  } catch (...) {
    PassReader(memory).memory(node);
    state_ = std::make_unique<State>(dataset);
    throw;
  }
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
                   where_text(nullptr, node.site()), where,
                   scope->name.short_str(), where_text(nullptr, scope->site)),
       loop});
}

}  // namespace

Dataset::iterator Dataset::begin(Site site) const {
  lint_scope(node(), site);
  return iterator(make_iterator());
}

Names Dataset::component_names() const {
  const NamesRef names = node_->names();
  return names ? *names : Names{};
}

int64_t Dataset::cardinality() const { return node_->cardinality(); }

const std::vector<TensorSpec>& Dataset::element_spec() const {
  return node_->specs();
}

}  // namespace berth::data
