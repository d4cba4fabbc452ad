// Datasets whose elements are cut into one part per replica.

#include <fmt/format.h>

#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/memory_space.h"
#include "distribute/strategy_core.h"
#include "op/device_scope.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

struct DistributedDataset::State {
  std::shared_ptr<StrategyCore> core;
  data::Dataset dataset;
  // An element is the batch of all replicas; false: that of one.
  bool global = true;
  Site site;
};

struct DistributedDataset::Iterator::Impl {
  std::shared_ptr<State> state;
  data::Iterator source;
  bool begun = false, ended = false;

  size_t replicas() const {
    return static_cast<size_t>(state->core->num_here());
  }
  std::optional<std::vector<Tensors>> cut();
  std::optional<std::vector<Tensors>> collect();
  int64_t examples_in(const Tensors& element) const;
  Tensor placed(Tensor t, size_t replica) const;
};

namespace {

// Examples [begin, begin + count) of a host tensor, where they are.
Tensor rows(const Tensor& t, int64_t begin, int64_t count) {
  Shape shape = t.shape();
  const int64_t row = shape[0] == 0 ? 0 : t.num_elements() / shape[0];
  shape[0] = count;
  return make_alias(t, shape,
                    static_cast<size_t>(begin * row) * size_of(t.dtype()));
}

}  // namespace

// The length of the first axis of all components.
int64_t DistributedDataset::Iterator::Impl::examples_in(
    const Tensors& element) const {
  for (const Tensor& t : element) {
    if (t.rank() > 0 && t.shape()[0] == element[0].shape()[0]) continue;
    throw errors::InvalidArgument(fmt::format(
        "a distributed dataset{}: an element has components {} and {}; "
        "expected batches, with one first dimension for the examples: call "
        "batch() before",
        where_text(nullptr, state->site), element[0].spec().str(),
        t.spec().str()));
  }
  if (!element.empty()) return element[0].shape()[0];
  throw errors::InvalidArgument(
      fmt::format("a distributed dataset{}: an element without components; "
                  "expected batches",
                  where_text(nullptr, state->site)));
}

// The host's memory serves all devices that share it.
Tensor DistributedDataset::Iterator::Impl::placed(Tensor t,
                                                  size_t replica) const {
  Device& device = *state->core->replicas()[replica][0];
  if (t.dtype() == string_ ||
      same_memory(device, DeviceManager::get().host())) {
    return t;
  }
  return copy_to_device(t, device);
}

std::optional<std::vector<Tensors>> DistributedDataset::Iterator::Impl::cut() {
  Tensors element;
  if (!source.next(element)) return std::nullopt;
  const int64_t batch = examples_in(element);
  if (!begun && batch < int64_t{state->core->num_replicas()}) {
    throw errors::InvalidArgument(fmt::format(
        "a distributed dataset{}: the first batch has {} examples for {} "
        "replicas; expected at least one each: its batch size is that of all "
        "replicas together",
        where_text(nullptr, state->site), batch, state->core->num_replicas()));
  }
  std::vector<Tensors> parts;
  int64_t begin = 0;
  int replica = 0;
  for (const int64_t count : state->core->examples(batch)) {
    if (state->core->tasks().is_here(replica++)) {
      Tensors& part = parts.emplace_back();
      for (const Tensor& t : element) part.push_back(rows(t, begin, count));
    }
    begin += count;
  }
  return parts;
}

std::optional<std::vector<Tensors>>
DistributedDataset::Iterator::Impl::collect() {
  std::vector<Tensors> parts(replicas());
  for (Tensors& part : parts) {
    ended = ended || !source.next(part);
    if (!ended) continue;
    if (&part == &parts.front()) return std::nullopt;
    // Replicas behind the end have no examples.
    part.clear();
    examples_in(parts.front());
    for (const Tensor& t : parts.front()) part.push_back(rows(t, 0, 0));
  }
  return parts;
}

std::optional<std::vector<PerReplica>> DistributedDataset::Iterator::next() {
  Impl& impl = *impl_;
  const std::optional<std::vector<Tensors>> parts =
      impl.state->global ? impl.cut() : impl.collect();
  impl.begun = true;
  if (!parts) return std::nullopt;
  std::vector<PerReplica> element;
  for (size_t c = 0; c < parts->front().size(); ++c) {
    Tensors values;
    for (size_t r = 0; r < parts->size(); ++r) {
      values.push_back(impl.placed((*parts)[r].at(c), r));
    }
    element.emplace_back(std::move(values));
  }
  return element;
}

DistributedDataset::Iterator DistributedDataset::make_iterator() const {
  Iterator it;
  it.impl_ = std::make_shared<Iterator::Impl>(
      Iterator::Impl{state_, state_->dataset.make_iterator()});
  return it;
}

int64_t DistributedDataset::cardinality() const {
  const int64_t n = state_->dataset.cardinality();
  if (n < 0 || state_->global) return n;
  const int64_t replicas = state_->core->num_replicas();
  return (n + replicas - 1) / replicas;
}

DistributedDataset::Cursor DistributedDataset::begin() const {
  Cursor cursor;
  cursor.it_ = std::make_shared<Iterator>(make_iterator());
  cursor.batch_ = cursor.it_->next();
  return cursor;
}

DistributedDataset Strategy::experimental_distribute_dataset(
    const data::Dataset& dataset, Site site) const {
  return DistributedDataset(std::make_shared<DistributedDataset::State>(
      DistributedDataset::State{core_, dataset, true, site}));
}

DistributedDataset Strategy::distribute_datasets_from_function(
    const std::function<data::Dataset(const InputContext&)>& fn,
    Site site) const {
  const TaskPart& tasks = core_->tasks();
  const InputContext context{
      .num_replicas_in_sync = num_replicas_in_sync(),
      .num_input_pipelines = tasks.several() ? tasks.ranks() : 1,
      .input_pipeline_id = tasks.rank};
  return DistributedDataset(std::make_shared<DistributedDataset::State>(
      DistributedDataset::State{core_, fn(context), false, site}));
}

}  // namespace berth::distribute
