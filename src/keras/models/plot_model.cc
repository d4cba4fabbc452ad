// plot_model: a model as an image.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/utils.h"
#include "berth/ops/math.h"
#include "keras/models/layer_state.h"

namespace berth::keras::utils {

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
  for (const Shape& shape : s.build.output_shapes) {
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
  if (o.show_dtype && !s.build.input_specs.empty()) {
    add(name_of(s.build.input_specs[0].dtype));
  }
  if (o.show_devices && !s.scope.device.empty()) add(s.scope.device);
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
      "font-family=\"monospace\" font-size=\"12\">\n<defs><marker id=\"tip\" "
      "markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"3\" "
      "orient=\"auto\"><path d=\"M0,0 L7,3 L0,6 z\"/></marker></defs>\n",
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

}  // namespace berth::keras::utils
