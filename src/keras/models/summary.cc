// Model::summary.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "base/bytes_text.h"
#include "berth/keras/models.h"
#include "device/device_manager.h"
#include "keras/models/keras_node.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

namespace {

using Row = std::array<std::string, 4>;

// "(None, 28, 28, 1)", the batch left open.
std::string shape_text(const std::vector<Shape>& shapes) {
  std::string s;
  for (const Shape& shape : shapes) {
    std::string one;
    for (int i = 0; i < shape.rank(); ++i) {
      if (i > 0) one += ", ";
      if (i == 0 || shape[i] < 0) {
        one += "None";
      } else {
        one += std::to_string(shape[i]);
      }
    }
    if (!s.empty()) s += ", ";
    s += fmt::format("({})", one);
  }
  return s.empty() ? "?" : s;
}

std::string device_text(const Layer& layer) {
  DeviceManager& m = DeviceManager::get();
  std::string s;
  for (const Variable& v : layer.weights()) {
    const Device* d = m.find(DeviceName::parse(v.device()));
    const std::string name = d ? d->short_name() : v.device();
    if (s.find(name) != std::string::npos) continue;
    if (!s.empty()) s += ' ';
    s += name;
  }
  if (!s.empty()) return s;
  const std::string& asked = layer.requested_device();
  const Device* d =
      asked.empty() ? &m.default_device() : m.find(DeviceName::parse(asked));
  return d ? d->short_name() : asked + " (none)";
}

int64_t size_of_all(const std::vector<Variable>& list) {
  int64_t n = 0;
  for (const Variable& v : list) n += v.shape().num_elements();
  return n;
}

std::string with_commas(int64_t n) {
  std::string s = std::to_string(n);
  for (int64_t i = static_cast<int64_t>(s.size()) - 3; i > 0; i -= 3) {
    s.insert(static_cast<size_t>(i), 1, ',');
  }
  return s;
}

Row row_of(const Layer& layer) {
  const LayerState& s = layer.base()->state();
  // An Input() has its shape from the beginning and is never called.
  const auto node = s.graph.nodes.empty() ? nullptr : s.graph.nodes[0].lock();
  if (!s.build.done && node && node->inputs.empty()) {
    return {fmt::format("{} ({})", s.name, s.type),
            shape_text({node->outputs[0].shape}), "0", device_text(layer)};
  }
  return {fmt::format("{} ({})", s.name, s.type),
          shape_text(s.build.output_shapes),
          s.build.done ? with_commas(layer.count_params()) : "unbuilt",
          device_text(layer)};
}

}  // namespace

void Model::summary(std::ostream& out) const {
  const LayerState& s = base()->state();
  std::vector<Row> rows;
  for (const Layer& part : s.parts) rows.push_back(row_of(part));
  if (rows.empty()) rows.push_back(row_of(*this));
  const Row head{"Layer (type)", "Output Shape", "Param #", "Device"};
  std::array<size_t, 4> width{};
  auto measure = [&](const Row& r) {
    for (size_t i = 0; i < 4; ++i) width[i] = std::max(width[i], r[i].size());
  };
  measure(head);
  for (const Row& r : rows) measure(r);
  auto line = [&](const Row& r) {
    std::string text =
        fmt::format(" {:<{}}  {:<{}}  {:>{}}  {}", r[0], width[0], r[1],
                    width[1], r[2], width[2], r[3]);
    text += '\n';
    return text;
  };
  const size_t full = 2 + width[0] + 2 + width[1] + 2 + width[2] + 2 + width[3];
  out << "Model: \"" << name() << "\"\n"
      << std::string(full, '_') << "\n"
      << line(head) << std::string(full, '=') << "\n";
  for (const Row& r : rows) out << line(r);
  out << std::string(full, '=') << "\n";
  const int64_t trained = size_of_all(trainable_variables());
  const int64_t others = size_of_all(non_trainable_variables());
  auto total = [&](const char* what, int64_t n) {
    out << fmt::format("{}: {} ({})\n", what, with_commas(n),
                       bytes_text(4 * n));
  };
  total("Total params", trained + others);
  total("Trainable params", trained);
  total("Non-trainable params", others);
  out << std::string(full, '_') << std::endl;
}

}  // namespace berth::keras
