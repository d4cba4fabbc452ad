#include "conformance/strategy/layers.h"

#include <numeric>
#include <random>

#include "conformance/strategy/models.h"

namespace berth::strategy_suite {

namespace {

// Devices of a replica: all, where the row does not divide batches.
int width_of(const Row& row) {
  if (row.devices_per_replica > 1) return row.devices_per_replica;
  return static_cast<int>(device_names(row.devices).size());
}

// The variables of the row's model, made without a strategy.
std::vector<Variable> variables_of(const Row& row) {
  keras::clear_session();
  const ModelSpec& spec = model_named(row.model);
  auto model = spec.make({});
  Tensors data = data_for(spec, 2);
  data.resize(spec.inputs.size());
  model.predict(data);
  return model.weights();
}

}  // namespace

distribute::Strategy layers_of(const Row& row,
                               const distribute::Shares& shares) {
  const auto names = device_names(row.devices);
  const auto& w = shares.weights();
  const int width = width_of(row);
  const auto units = static_cast<int64_t>(
      w.empty() ? static_cast<double>(width)
                : std::accumulate(w.begin(), w.end(), 0.0));
  const int replicas = static_cast<int>(names.size()) / width;
  distribute::LayoutMap map(
      distribute::Mesh({{"batch", replicas}, {"model", width}}, names));
  std::mt19937 draw(static_cast<uint32_t>(row.layout));
  for (const Variable& v : variables_of(row)) {
    std::vector<size_t> axes;
    const auto rank = static_cast<size_t>(v.shape().rank());
    for (size_t d = 0; d < rank; ++d) {
      if (v.shape()[static_cast<int>(d)] % units == 0) axes.push_back(d);
    }
    // Where it is the only one, it is divided.
    if (axes.empty() || (draw() % 3 == 0 && !map.entries().empty())) continue;
    distribute::AxisNames layout(rank);
    layout[axes[draw() % axes.size()]] = "model";
    map["^" + v.name() + "$"] = layout;
  }
  return distribute::ModelParallel(map, {"batch", shares});
}

}  // namespace berth::strategy_suite
