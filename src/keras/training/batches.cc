// Batches of datasets, tensors and replicas.

#include "keras/training/batches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "device/device_manager.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/strategy/distributed_dataset.h"
#include "distribute/strategy/strategy_core.h"
#include "keras/models/layer_state.h"
#include "keras/training/argument_checks.h"
#include "op/device_scope.h"
#include "ops/random_key.h"
#include "tensor/tensor_impl.h"

namespace berth::keras {

namespace {

// One list of tensors on the host; replicas without examples add nothing.
void join(const std::vector<distribute::PerReplica>& parts, Tensors& element) {
  const OnDevice host(&DeviceManager::get().host());
  element.clear();
  for (const distribute::PerReplica& p : parts) {
    Tensors there;
    for (const Tensor& t : p.values()) {
      if (t.rank() == 0 || t.shape()[0] > 0) there.push_back(t);
    }
    if (there.empty()) there = {p[0]};
    element.push_back(there.size() == 1 ? there[0] : concat(there, 0));
  }
}

// Batches of all tasks, of which each has made its share.
class BatchOfTasks {
 public:
  // `source`: what the batches are of, whose shapes serve where there is none.
  BatchOfTasks(std::shared_ptr<distribute::StrategyCore> core, NextBatch mine,
               std::optional<data::Dataset> source = std::nullopt)
      : core_(std::move(core)),
        mine_(std::move(mine)),
        source_(std::move(source)),
        last_(std::make_shared<Last>(core_)) {}

  bool operator()(Tensors& element) {
    ended_ = ended_ || !mine_(part_);
    const int64_t rows = ended_ ? -1 : part_.at(0).shape()[0];
    distribute::CollectiveExecutor& link = *core_->link();
    const auto ranks = static_cast<size_t>(link.ranks());
    std::vector<int64_t> all(ranks);
    const std::vector<int64_t> bytes(ranks, sizeof(rows));
    link.member().exchange().all_gather(
        &rows, bytes, all.data(),
        {.channel = "data", .what = "the next batch", .step = link.step()});
    const auto over = std::count(all.begin(), all.end(), -1);
    if (over == static_cast<int64_t>(ranks)) return false;
    if (part_.empty() && source_) {
      part_ = distribute::without_examples(*source_).value_or(Tensors());
    }
    if (part_.empty()) {
      throw errors::InvalidArgument(fmt::format(
          "the dataset of {} has no batch at all, while other tasks have some; "
          "expected at least one in each task",
          link.member().task().str()));
    }
    int64_t total = 0, before = 0;
    for (size_t r = 0; r < ranks; ++r) {
      all[r] = std::max<int64_t>(all[r], 0);
      if (static_cast<int>(r) < link.rank()) before += all[r];
      total += all[r];
    }
    element.clear();
    for (const Tensor& t : part_) element.push_back(framed(t, before, total));
    last_->batch = element.at(0);
    core_->set_task_rows(all, last_->batch);
    return true;
  }

 private:
  // The batch that the strategy knows, which lives until there is another.
  struct Last {
    explicit Last(std::shared_ptr<distribute::StrategyCore> c)
        : core(std::move(c)) {}
    ~Last() { core->set_task_rows({}, Tensor()); }
    const std::shared_ptr<distribute::StrategyCore> core;
    Tensor batch;
  };

  // `total` rows, of which those of `t` from `before` on are filled in.
  Tensor framed(const Tensor& t, int64_t before, int64_t total) const {
    Shape shape = t.shape();
    const size_t row =
        shape[0] == 0 ? 0
                      : t.impl()->size_bytes() / static_cast<size_t>(shape[0]);
    shape[0] = total;
    const Tensor frame =
        make_tensor(DeviceManager::get().host(), t.dtype(), shape);
    if (!ended_ && row > 0) {
      t.copy_to(frame.impl()->data() + static_cast<size_t>(before) * row);
    }
    return frame;
  }

  std::shared_ptr<distribute::StrategyCore> core_;
  NextBatch mine_;
  std::optional<data::Dataset> source_;
  std::shared_ptr<Last> last_;
  Tensors part_;
  bool ended_ = false;
};

// What a model calls its inputs and outputs.
struct NamedParts {
  const char* what;
  std::string model;
  data::Names inputs, outputs;
  Site site;
};

size_t place_among(const data::Names& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) -
                             names.begin());
}

// The components in the order that steps take them; none: as they are.
std::vector<size_t> order_of(const NamedParts& parts,
                             const data::Names& names) {
  std::vector<size_t> order, rest;
  std::string missing;
  for (const std::string& name : parts.inputs) {
    const size_t at = place_among(names, name);
    if (at == names.size()) {
      missing = name;
    } else {
      order.push_back(at);
    }
  }
  if (order.empty()) return {};
  if (!missing.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "{}: the dataset has components {}{}; model \"{}\" has an input "
        "\"{}\", too: expected one for each of {}",
        parts.what, fmt::join(names, ", "), where_text(nullptr, parts.site),
        parts.model, missing, fmt::join(parts.inputs, ", ")));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (place_among(parts.inputs, names[i]) == parts.inputs.size()) {
      rest.push_back(i);
    }
  }
  std::stable_sort(rest.begin(), rest.end(), [&](size_t a, size_t b) {
    return place_among(parts.outputs, names[a]) <
           place_among(parts.outputs, names[b]);
  });
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

}  // namespace

Batches::Batches(data::Dataset dataset, const LayerState& model,
                 const char* what, Site site,
                 const std::shared_ptr<distribute::StrategyCore>& core) {
  std::optional<data::Dataset> mine;
  if (core && core->link()) {
    mine = distribute::dataset_of_task(*core, dataset, what, site);
  }
  own_data = mine.has_value();
  if (mine) dataset = *mine;
  this->dataset = dataset;
  cardinality = dataset.cardinality();
  const NamedParts parts{what, model.name, model.input_names,
                         model.output_names, site};
  begin = [dataset, parts, core = mine ? core : nullptr] {
    auto it = std::make_shared<data::Iterator>(dataset.make_iterator());
    auto next = [it, parts, named = data::Element(), first = true,
                 order = std::vector<size_t>()](Tensors& element) mutable {
      if (!it->next_named(named)) return false;
      if (first) order = order_of(parts, named.names());
      first = false;
      if (order.empty()) {
        element.swap(named);
        return true;
      }
      element.resize(order.size());
      for (size_t i = 0; i < order.size(); ++i) {
        element[i] = std::move(static_cast<Tensors&>(named)[order[i]]);
      }
      return true;
    };
    if (!core) return BatchReader{std::move(next), it};
    return BatchReader{BatchOfTasks(core, std::move(next), dataset), it};
  };
}

Batches::Batches(const distribute::DistributedDataset& dataset,
                 std::shared_ptr<distribute::StrategyCore> core)
    : cardinality(dataset.cardinality()),
      own_data(dataset.of_each_task()),
      begin([dataset, core] {
        auto it = std::make_shared<distribute::DistributedDataset::Iterator>(
            dataset.make_iterator());
        NextBatch next = [it](Tensors& element) {
          const auto parts = it->next();
          if (parts) join(*parts, element);
          return parts.has_value();
        };
        if (core && core->link()) next = BatchOfTasks(core, std::move(next));
        return BatchReader{std::move(next), nullptr};
      }) {}

void cut_batch(const Tensors& element, size_t num_inputs, bool needed,
               Site site, Batch* batch) {
  if (element.size() < num_inputs + (needed ? 1 : 0)) {
    throw errors::InvalidArgument(fmt::format(
        "a batch has {} tensors{}; expected {} inputs, then the targets",
        element.size(), where_text(nullptr, site), num_inputs));
  }
  const auto middle = element.begin() + static_cast<std::ptrdiff_t>(num_inputs);
  batch->inputs.assign(element.begin(), middle);
  batch->targets.assign(middle, element.end());
  for (const Tensor& t : element) {
    if (t.rank() == 0 || t.shape()[0] != element[0].shape()[0]) {
      throw errors::InvalidArgument(fmt::format(
          "a batch has tensors {} and {}{}; expected one first dimension",
          element[0].shape().str(), t.shape().str(),
          where_text(nullptr, site)));
    }
  }
  // Its mean loss would be 0 / 0.
  if (element[0].shape()[0] == 0) {
    throw errors::InvalidArgument(fmt::format(
        "a batch has no examples{}; expected at least one: filter such batches "
        "out of the dataset",
        where_text(nullptr, site)));
  }
}

data::Dataset batches_of(const char* what, const Tensors& components,
                         int64_t batch_size, bool shuffle, Site site) {
  const Tensor& x = components[0];
  for (size_t i = 1; i < components.size(); ++i) {
    check_pair(what, x, components[i], site);
  }
  auto d = data::Dataset::from_tensor_slices(components, site);
  if (shuffle && x.shape()[0] > 1) {
    const RandomKey key = next_random_key(std::nullopt);
    const uint64_t seed = static_cast<uint64_t>(key.seed) * 0x9E3779B97F4A7C15 +
                          static_cast<uint64_t>(key.op_id);
    d = d.shuffle(x.shape()[0], {.seed = seed}, site);
  }
  return d.batch(batch_size, {}, site).prefetch(2, site);
}

}  // namespace berth::keras
