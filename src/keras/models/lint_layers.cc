// Counts layers that are thrown away, by the line that makes them.

#include "keras/models/lint_layers.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "base/immortal.h"
#include "base/where.h"

namespace berth::keras {

namespace {

// What happened at one line.
struct Line {
  int alive = 0;
  bool crowded = false;  // several have been alive at once
  int in_a_row = 0;
  std::string shapes;  // of the last one's weights and results
};

struct Lines {
  std::mutex mutex;
  std::map<std::pair<std::string_view, int>, Line> at;
};

Lines& lines() {
  static auto& l = immortal<Lines>();
  return l;
}

std::string shapes_of(const LayerState& s) {
  std::string text;
  for (const Variable& v : s.weights.trainable) text += v.shape().str();
  for (const Shape& shape : s.build.output_shapes) text += shape.str();
  return text;
}

void report_layer(const LayerState& s, const std::string& what) {
  const std::string where = where_text(nullptr, s.site);
  report_once(where, {"layers-every-call", debugging::Severity::kLint,
                      fmt::format("{}{} {}; make the layer once, outside, and "
                                  "call it",
                                  s.type, where, what),
                      s.site});
}

}  // namespace

void lint_layer_made(LayerState& s) {
  s.lint.made_in_trace = tracing();
  if (s.site.file == nullptr) return;
  Lines& l = lines();
  std::lock_guard lock(l.mutex);
  Line& line = l.at[{s.site.file, s.site.line}];
  line.crowded |= line.alive++ > 0;
}

void lint_layer_gone(const LayerState& s) {
  if (s.site.file == nullptr) return;
  const bool weights = !s.weights.trainable.empty() && !s.lint.is_part.load();
  bool third = false;
  {
    Lines& l = lines();
    std::lock_guard lock(l.mutex);
    Line& line = l.at[{s.site.file, s.site.line}];
    const bool once = weights && !line.crowded &&
                      s.lint.eager_calls.load() == 1 &&
                      s.lint.traced_calls.load() == 0;
    std::string shapes = once ? shapes_of(s) : "";
    // Layers of different shapes are tried out, not made anew.
    if (shapes != line.shapes) line.in_a_row = 0;
    line.in_a_row = once ? line.in_a_row + 1 : 0;
    line.shapes = std::move(shapes);
    if (--line.alive == 0) line.crowded = false;
    third = line.in_a_row == kLayersInARow;
  }
  if (third) {
    report_layer(s, fmt::format("was made, called once and thrown away {} "
                                "times in a row, so every call has new weights "
                                "and none is trained",
                                kLayersInARow));
  }
  if (weights && s.lint.made_in_trace && tracing() &&
      s.lint.traced_calls.load() > 0) {
    report_layer(s,
                 "was made inside a traced function and thrown away at its "
                 "end, so every trace has new weights that nobody can train or "
                 "save");
  }
}

}  // namespace berth::keras
