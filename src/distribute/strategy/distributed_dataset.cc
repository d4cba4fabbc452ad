// Datasets whose elements are split into one part per replica, and the part of
// a dataset that each task reads.

#include "distribute/strategy/distributed_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/where.h"
#include "berth/errors.h"
#include "data/auto_shard.h"
#include "device/device_manager.h"
#include "device/memory_space.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/multi_worker/step_consensus.h"
#include "distribute/strategy/strategy_core.h"
#include "op/device_scope.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

namespace {

using data::AutoShardPolicy;

// What a task reports of its dataset: policy, number of files (-1: not by
// file), whether it has a hint, and why it is not by file.
std::string said_of(const data::Dataset& dataset) {
  const auto policy =
      data::options_of(dataset).experimental_distribute.auto_shard_policy;
  const bool asks =
      policy == AutoShardPolicy::kAuto || policy == AutoShardPolicy::kFile;
  const data::FileSplit split =
      asks ? data::file_split(dataset) : data::FileSplit{};
  return fmt::format("{} {} {} {}", data::name_of(policy),
                     split.at != nullptr ? split.files : -1,
                     data::has_hint(dataset.node()) ? 1 : 0, split.why_not);
}

struct Heard {
  std::string policy, why_not;
  int64_t files = -1;
  bool hint = false;
};

Heard heard(const std::string& said) {
  const size_t a = said.find(' '), b = said.find(' ', a + 1),
               c = said.find(' ', b + 1);
  return {.policy = said.substr(0, a),
          .why_not = said.substr(c + 1),
          .files = std::stoll(said.substr(a + 1, b - a - 1)),
          .hint = said.substr(b + 1, c - b - 1) == "1"};
}

// Decided from the reports of all tasks, so all decide the same.
AutoShardPolicy resolved(const std::vector<Heard>& all,
                         const std::vector<TaskId>& tasks, const char* what,
                         Site site) {
  const auto refuse = [&](const std::string& problem) {
    throw errors::InvalidArgument(
        fmt::format("{}{}: {}", what, where_text(nullptr, site), problem));
  };
  const auto ranks = static_cast<int64_t>(all.size());
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r].policy == all[0].policy) continue;
    refuse(fmt::format(
        "the dataset of {} has auto_shard_policy {}, that of {} "
        "{}; expected the same in all tasks",
        tasks[0].str(), all[0].policy, tasks[r].str(), all[r].policy));
  }
  const std::string& policy = all[0].policy;
  const auto bad = std::find_if(
      all.begin(), all.end(), [&](const Heard& h) { return h.files < ranks; });
  if (policy == "OFF") return AutoShardPolicy::kOff;
  if (policy == "HINT") {
    for (size_t r = 0; r < all.size(); ++r) {
      if (all[r].hint) continue;
      refuse(
          fmt::format("auto_shard_policy is HINT, and the dataset of {} has "
                      "no shard(SHARD_HINT, SHARD_HINT); expected one where "
                      "tasks part",
                      tasks[r].str()));
    }
    return AutoShardPolicy::kHint;
  }
  if (policy == "FILE" && bad != all.end()) {
    const auto r = static_cast<size_t>(bad - all.begin());
    refuse(fmt::format(
        "auto_shard_policy is FILE, and the dataset of {} cannot be split: {}; "
        "expected at least {} files, one per task, or policy DATA",
        tasks[r].str(),
        bad->files < 0 ? bad->why_not
                       : fmt::format("it reads {} files", bad->files),
        ranks));
  }
  return bad == all.end() && policy != "DATA" ? AutoShardPolicy::kFile
                                              : AutoShardPolicy::kData;
}

}  // namespace

std::optional<data::Dataset> dataset_of_task(const StrategyCore& core,
                                             const data::Dataset& dataset,
                                             const char* what, Site site) {
  CollectiveExecutor& link = *core.link();
  std::string mine;
  try {
    mine = said_of(dataset);  // may read the first element
  } catch (const errors::Error& e) {
    core.failed(e);
    throw;
  }
  std::vector<Heard> all;
  for (const std::string& said : gather_texts(link, mine, "the dataset")) {
    all.push_back(heard(said));
  }
  const AutoShardPolicy policy =
      resolved(all, link.member().ranks(), what, site);
  if (policy == AutoShardPolicy::kData) return std::nullopt;
  return data::part_of_task(dataset, policy, link.ranks(), link.rank());
}

std::optional<Tensors> without_examples(const data::Dataset& dataset) {
  Tensors none;
  for (const TensorSpec& spec : dataset.element_spec()) {
    Shape shape = spec.shape;
    if (shape.rank() < 1) return std::nullopt;
    shape[0] = 0;
    if (!shape.is_fully_defined()) return std::nullopt;
    none.push_back(make_tensor(DeviceManager::get().host(), spec.dtype, shape));
  }
  if (none.empty()) return std::nullopt;
  return none;
}

bool any_task(CollectiveExecutor& link, bool mine, const char* what) {
  const int64_t here = mine ? 1 : 0;
  std::vector<int64_t> all(static_cast<size_t>(link.ranks()));
  const std::vector<int64_t> bytes(all.size(), sizeof(here));
  link.member().exchange().all_gather(
      &here, bytes, all.data(),
      {.channel = "data", .what = what, .step = link.step()});
  return std::any_of(all.begin(), all.end(), [](int64_t n) { return n > 0; });
}

struct DistributedDataset::State {
  std::shared_ptr<StrategyCore> core;
  data::Dataset dataset;
  // Whose batch an element of the dataset is.
  enum class Of : uint8_t { kAll, kTask, kReplica };
  Of of = Of::kAll;
  Site site;
  // Each task reads its own data, which may end at different times.
  bool own() const { return of != Of::kAll && core->link() != nullptr; }
};

struct DistributedDataset::Iterator::Impl {
  std::shared_ptr<State> state;
  data::Iterator source;
  bool ended = false;
  Tensors like;  // own data: the last element, or its specs with no examples

  size_t replicas() const {
    return static_cast<size_t>(state->core->num_here());
  }
  std::optional<std::vector<Tensors>> cut();
  std::optional<std::vector<Tensors>> cut_here();
  std::optional<std::vector<Tensors>> collect();
  std::optional<std::vector<Tensors>> read();
  std::vector<Tensors> nothing() const;
  int64_t examples_in(const Tensors& element) const;
  Tensor placed(Tensor t, size_t replica) const;
};

namespace {

// Examples [begin, begin + count) of a host tensor, as a view.
Tensor rows(const Tensor& t, int64_t begin, int64_t count) {
  Shape shape = t.shape();
  const int64_t row = shape[0] == 0 ? 0 : t.num_elements() / shape[0];
  shape[0] = count;
  return make_alias(t, shape,
                    static_cast<size_t>(begin * row) * size_of(t.dtype()));
}

}  // namespace

// The common length of the first axis of all components.
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

// All devices that share the host's memory use it directly.
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
    // Replicas past the end have no examples.
    part.clear();
    examples_in(parts.front());
    for (const Tensor& t : parts.front()) part.push_back(rows(t, 0, 0));
  }
  return parts;
}

// This task's batch, split into equal parts.
std::optional<std::vector<Tensors>>
DistributedDataset::Iterator::Impl::cut_here() {
  Tensors element;
  if (ended || !source.next(element)) return std::nullopt;
  const int64_t batch = examples_in(element);
  const auto n = static_cast<int64_t>(replicas());
  std::vector<Tensors> parts(replicas());
  for (int64_t r = 0; r < n; ++r) {
    const int64_t begin = batch * r / n, end = batch * (r + 1) / n;
    for (const Tensor& t : element) {
      parts[static_cast<size_t>(r)].push_back(rows(t, begin, end - begin));
    }
  }
  return parts;
}

// For a task that has run out of data while others have not.
std::vector<Tensors> DistributedDataset::Iterator::Impl::nothing() const {
  Tensors none;
  if (!like.empty()) {
    for (const Tensor& t : like) none.push_back(rows(t, 0, 0));
  } else if (auto known = without_examples(state->dataset)) {
    none = std::move(*known);
  } else {
    throw errors::InvalidArgument(fmt::format(
        "a distributed dataset{}: {} has no batch at all, while other tasks "
        "have some, and the shapes of its components are not known; expected "
        "at least one batch in each task",
        where_text(nullptr, state->site),
        state->core->link()->member().task().str()));
  }
  return std::vector<Tensors>(replicas(), none);
}

std::optional<std::vector<Tensors>> DistributedDataset::Iterator::Impl::read() {
  if (!state->own()) {
    return state->of == State::Of::kAll ? cut() : collect();
  }
  auto parts = state->of == State::Of::kTask ? cut_here() : collect();
  ended = ended || !parts;
  if (parts) like = parts->front();
  if (!any_task(*state->core->link(), parts.has_value(), "the next batch")) {
    return std::nullopt;
  }
  return parts ? std::move(parts) : nothing();
}

std::optional<std::vector<PerReplica>> DistributedDataset::Iterator::next() {
  Impl& impl = *impl_;
  const std::optional<std::vector<Tensors>> parts = impl.read();
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
  if (n < 0 || state_->of == State::Of::kAll) return n;
  // The longest of the tasks decides.
  if (state_->of == State::Of::kTask) return data::kUnknown;
  const int64_t replicas = state_->core->num_replicas();
  return (n + replicas - 1) / replicas;
}

bool DistributedDataset::of_each_task() const { return state_->own(); }

DistributedDataset::Cursor DistributedDataset::begin() const {
  Cursor cursor;
  cursor.it_ = std::make_shared<Iterator>(make_iterator());
  cursor.batch_ = cursor.it_->next();
  return cursor;
}

DistributedDataset Strategy::experimental_distribute_dataset(
    const data::Dataset& dataset, Site site) const {
  using State = DistributedDataset::State;
  std::optional<data::Dataset> mine;
  if (core_->link()) {
    mine = dataset_of_task(*core_, dataset, "experimental_distribute_dataset",
                           site);
  }
  const auto of = mine ? State::Of::kTask : State::Of::kAll;
  return DistributedDataset(
      std::make_shared<State>(State{core_, mine.value_or(dataset), of, site}));
}

DistributedDataset dataset_from_function(
    std::shared_ptr<StrategyCore> core,
    const std::function<data::Dataset(const InputContext&)>& fn, Site site) {
  const TaskPart& tasks = core->tasks();
  const InputContext context{
      .num_replicas_in_sync = core->num_replicas(),
      .num_input_pipelines = tasks.several() ? tasks.ranks() : 1,
      .input_pipeline_id = tasks.rank};
  using State = DistributedDataset::State;
  return DistributedDataset(std::make_shared<State>(
      State{std::move(core), fn(context), State::Of::kReplica, site}));
}

DistributedDataset Strategy::distribute_datasets_from_function(
    const std::function<data::Dataset(const InputContext&)>& fn,
    Site site) const {
  return dataset_from_function(core_, fn, site);
}

}  // namespace berth::distribute
