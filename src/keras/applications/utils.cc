#include "berth/keras/utils.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "keras/models/layer_state.h"

namespace berth::keras::utils {

Tensor to_categorical(const Tensor& labels, int64_t num_classes, Site site) {
  Tensor y = labels;
  if (y.rank() > 1 && y.shape()[y.rank() - 1] == 1) y = squeeze(y, {-1}, site);
  const std::vector<int64_t> values =
      math::cast(y, int64, site).to_vector<int64_t>();
  int64_t largest = -1, least = 0;
  for (int64_t v : values) {
    largest = std::max(largest, v);
    least = std::min(least, v);
  }
  const int64_t classes = num_classes == 0 ? largest + 1 : num_classes;
  if (least < 0 || classes < 1 || largest >= classes || classes > (1 << 24)) {
    throw errors::InvalidArgument(fmt::format(
        "to_categorical{}: labels are {} to {}, num_classes {}; expected "
        "labels from 0 to num_classes - 1",
        where_text(nullptr, site), least, largest, num_classes));
  }
  return one_hot(math::cast(y, int64, site), classes, {}, site);
}

void set_random_seed(int64_t seed) { random::set_seed(seed); }

namespace {

constexpr int kBoxHeight = 46, kBoxGap = 30, kCharWidth = 7;

std::string escaped(const std::string& text) {
  std::string s;
  for (char c : text) {
    switch (c) {
      case '<':
        s += "&lt;";
        break;
      case '>':
        s += "&gt;";
        break;
      case '&':
        s += "&amp;";
        break;
      default:
        s += c;
    }
  }
  return s;
}

struct Box {
  std::string title, detail;
};

// Names of the layers that each takes its inputs from, by its config.
void find_sources(const Config& c, std::vector<std::string>* names) {
  if (c.kind() == Config::Kind::kList) {
    for (const Config& e : c.as_list()) find_sources(e, names);
    return;
  }
  if (c.kind() != Config::Kind::kObject) return;
  for (const std::string& field : c.names()) {
    if (field == "keras_history") {
      names->push_back(c.at(field).as_list().at(0).as_string());
    } else {
      find_sources(c.at(field), names);
    }
  }
}

// Layer by layer where a model has no graph.
std::map<std::string, std::vector<std::string>> edges_of(
    const Model& model, const std::vector<Layer>& parts) {
  std::map<std::string, std::vector<std::string>> edges;
  if (model.base()->state().type == "Model") {
    try {
      for (const Config& c : model.get_config().at("layers").as_list()) {
        if (!c.contains("inbound_nodes")) continue;
        find_sources(c.at("inbound_nodes"), &edges[c.at("name").as_string()]);
      }
      return edges;
    } catch (const errors::FailedPrecondition&) {  // a class without config
      edges.clear();
    }
  }
  if (model.base()->state().type != "Sequential") return edges;
  for (size_t i = 1; i < parts.size(); ++i) {
    edges[parts[i].name()] = {parts[i - 1].name()};
  }
  return edges;
}

std::string shapes_of(const LayerState& s) {
  std::string text;
  for (const Shape& shape : s.output_shapes) {
    std::string dims = "None";
    for (int i = 1; i < shape.rank(); ++i) {
      dims += shape[i] < 0 ? ", None" : fmt::format(", {}", shape[i]);
    }
    text += fmt::format("{}({})", text.empty() ? "" : ", ", dims);
  }
  return text.empty() ? "(?)" : text;
}

Box box_of(const Layer& layer, const PlotModelOptions& o) {
  const LayerState& s = layer.base()->state();
  Box box;
  box.title =
      o.show_layer_names ? fmt::format("{} ({})", s.name, s.type) : s.type;
  const auto add = [&](const std::string& text) {
    box.detail += (box.detail.empty() ? "" : "  ") + text;
  };
  if (o.show_shapes) add(shapes_of(s));
  if (o.show_dtype && !s.input_specs.empty()) {
    add(name_of(s.input_specs[0].dtype));
  }
  if (o.show_devices && !s.device.empty()) add(s.device);
  return box;
}

std::string drawn(const std::vector<Layer>& parts,
                  const std::map<std::string, std::vector<std::string>>& edges,
                  const PlotModelOptions& o) {
  std::map<std::string, int> row;
  std::vector<Box> boxes;
  size_t widest = 12;
  for (const Layer& part : parts) {
    row.emplace(part.name(), static_cast<int>(boxes.size()));
    boxes.push_back(box_of(part, o));
    widest = std::max(
        {widest, boxes.back().title.size(), boxes.back().detail.size()});
  }
  const int width = static_cast<int>(widest) * kCharWidth + 24;
  const int step = kBoxHeight + kBoxGap;
  const int side = 120;  // for what passes by
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"monospace\" font-size=\"12\">\n"
      "<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" "
      "refX=\"7\" "
      "refY=\"3\" orient=\"auto\"><path d=\"M0,0 L7,3 L0,6 z\"/></marker>"
      "</defs>\n",
      width + side + 20, static_cast<int>(boxes.size()) * step + 10);
  for (size_t i = 0; i < boxes.size(); ++i) {
    const int y = static_cast<int>(i) * step + 10;
    svg += fmt::format(
        "<rect x=\"10\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" "
        "fill=\"#eef3fa\" stroke=\"#456\"/>\n<text x=\"20\" y=\"{}\">{}"
        "</text>\n<text x=\"20\" y=\"{}\" fill=\"#567\">{}</text>\n",
        y, width, kBoxHeight, y + 18, escaped(boxes[i].title), y + 36,
        escaped(boxes[i].detail));
  }
  for (const auto& [to, sources] : edges) {
    for (const std::string& from : sources) {
      const auto a = row.find(from), b = row.find(to);
      if (a == row.end() || b == row.end()) continue;
      const int y0 = a->second * step + 10 + kBoxHeight;
      const int y1 = b->second * step + 10;
      if (b->second == a->second + 1) {
        svg += fmt::format(
            "<path d=\"M{0},{1} L{0},{2}\" stroke=\"#345\" fill=\"none\" "
            "marker-end=\"url(#tip)\"/>\n",
            10 + width / 2, y0, y1);
        continue;
      }
      const int out = width + 10;
      const int bend =
          out + std::min(side, 20 * std::abs(b->second - a->second));
      svg += fmt::format(
          "<path d=\"M{0},{1} C{2},{1} {2},{3} {0},{3}\" stroke=\"#345\" "
          "fill=\"none\" marker-end=\"url(#tip)\"/>\n",
          out, y0 - kBoxHeight / 2, bend, y1 + kBoxHeight / 2);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string plot_model(const Model& model, const std::string& to_file,
                       const PlotModelOptions& options, Site site) {
  std::vector<Layer> parts = model.base()->state().parts;
  if (parts.empty()) parts.push_back(model);
  const std::string svg = drawn(parts, edges_of(model, parts), options);
  if (to_file.empty()) return svg;
  std::ofstream out(to_file, std::ios::binary);
  out << svg;
  out.close();
  if (!out) {
    throw errors::Unavailable(fmt::format(
        "plot_model of \"{}\"{}: \"{}\" cannot be written; expected a folder "
        "that is there and may be written",
        model.name(), where_text(nullptr, site), to_file));
  }
  return svg;
}

Tensors pack_x_y_sample_weight(const Tensor& x, const Tensor& y,
                               const Tensor& sample_weight) {
  Tensors all{x};
  if (y.defined()) all.push_back(y);
  if (y.defined() && sample_weight.defined()) all.push_back(sample_weight);
  return all;
}

XYSampleWeight unpack_x_y_sample_weight(const Tensors& data, Site site) {
  if (data.empty() || data.size() > 3) {
    throw errors::InvalidArgument(fmt::format(
        "unpack_x_y_sample_weight{}: got {} tensors; expected x, then y and "
        "sample_weight at most",
        where_text(nullptr, site), data.size()));
  }
  return {data[0], data.size() > 1 ? data[1] : Tensor(),
          data.size() > 2 ? data[2] : Tensor()};
}

data::Dataset timeseries_dataset_from_array(const Tensor& data,
                                            const Tensor& targets,
                                            int64_t sequence_length,
                                            const TimeseriesOptions& o,
                                            Site site) {
  const int64_t steps = data.rank() > 0 ? data.shape()[0] : 0;
  const int64_t end = o.end_index > 0 ? o.end_index : steps;
  if (sequence_length < 1 || o.sequence_stride < 1 || o.sampling_rate < 1 ||
      o.batch_size < 1 || o.start_index < 0 || end > steps ||
      o.start_index >= end || o.sampling_rate > end ||
      sequence_length > end / o.sampling_rate) {
    throw errors::InvalidArgument(fmt::format(
        "timeseries_dataset_from_array{}: {} steps from {} to {} of {}, stride "
        "{}, rate {}, batch_size {}; expected windows inside of the data, and "
        "numbers of at least 1",
        where_text(nullptr, site), sequence_length, o.start_index, end, steps,
        o.sequence_stride, o.sampling_rate, o.batch_size));
  }
  int64_t last = end - o.start_index - sequence_length * o.sampling_rate + 1;
  if (targets.defined()) {
    last = std::min(last, targets.shape()[0] - o.start_index);
  }
  std::vector<int64_t> starts;
  for (int64_t at = 0; at < last; at += o.sequence_stride) {
    starts.push_back(o.start_index + at);
  }
  const auto n = static_cast<int64_t>(starts.size());
  data::Dataset places =
      data::Dataset::from_tensor_slices({constant(starts, {n})}, site);
  if (o.shuffle) {
    places = places.shuffle(std::max<int64_t>(n, 1), {.seed = o.seed}, site);
  }
  const Tensor offsets =
      range(0, sequence_length * o.sampling_rate, o.sampling_rate, int64, site);
  return places.batch(o.batch_size, {}, site)
      .map(
          [data, targets, offsets, site](const Tensors& e) {
            const Tensor at =
                math::add(expand_dims(e[0], 1, site), offsets, site);
            Tensors out{gather(data, at, 0, site)};
            if (targets.defined()) {
              out.push_back(gather(targets, e[0], 0, site));
            }
            return out;
          },
          {}, site);
}

std::pair<data::Dataset, data::Dataset> split_dataset(
    const data::Dataset& dataset, const SplitOptions& o, Site site) {
  const int64_t n = dataset.cardinality();
  const auto count = [&](double size) {
    return size < 1 ? static_cast<int64_t>(
                          std::llround(size * static_cast<double>(n)))
                    : static_cast<int64_t>(size);
  };
  int64_t left = count(o.left_size), right = count(o.right_size);
  const bool given = o.left_size > 0 || o.right_size > 0;
  if (o.left_size == 0) left = n - right;
  if (o.right_size == 0) right = n - left;
  if (n < 0 || !given || o.left_size < 0 || o.right_size < 0 || left < 0 ||
      right < 0 || left + right > n) {
    throw errors::InvalidArgument(fmt::format(
        "split_dataset{}: left_size is {}, right_size {} of {} elements; "
        "expected shares below 1 or numbers that the dataset has, one at "
        "least, and a dataset of known cardinality",
        where_text(nullptr, site), o.left_size, o.right_size, n));
  }
  data::Dataset all = dataset;
  if (o.shuffle) {
    // One order for both parts.
    const uint64_t seed =
        o.seed ? *o.seed
               : static_cast<uint64_t>(
                     random::uniform({}, {.minval = 0, .maxval = 1 << 24}, site)
                         .item<float>());
    all = all.shuffle(std::max<int64_t>(n, 1),
                      {.seed = seed, .reshuffle_each_iteration = false}, site);
  }
  return {all.take(left, site), all.skip(left, site).take(right, site)};
}

}  // namespace berth::keras::utils
