// A pipeline's step as a picture.

#include <fmt/format.h>

#include <algorithm>

#include "berth/distribute.h"
#include "distribute/pipeline/schedule.h"

namespace berth::distribute {

namespace {

constexpr double kWidth = 860, kLeft = 56, kRow = 30, kBox = 24, kTop = 30;

// Forward, backward and its halves differ in lightness too, for print.
const char* class_of(char pass) {
  return pass == 'F' ? "f" : pass == 'I' ? "i" : pass == 'W' ? "w" : "b";
}

constexpr const char* kStyle =
    "text{font:11px sans-serif;fill:#222}"
    ".box text{text-anchor:middle}"
    "rect{stroke:#fff;stroke-width:1}"
    ".f rect{fill:#9ecae1}.b rect{fill:#fdae6b}"
    ".i rect{fill:#fdd0a2}.w rect{fill:#a1d99b}";

}  // namespace

std::string StrategyPlan::PipelinePlan::svg() const {
  const PipelineActions actions = parse_actions(instructions);
  const bool halves = instructions.find('W') != std::string::npos;
  PipelineTimes t;
  for (const Stage& s : stages) {
    const bool known = s.forward_us > 0 && s.backward_us > 0;
    const double backward = known ? s.backward_us : 2;
    t.forward.push_back(known ? s.forward_us : 1);
    t.input.push_back(backward / 2);
    t.weight.push_back(backward / 2);
  }
  const PipelineTiming timing = time_of(actions, t);
  const double scale = (kWidth - kLeft - 10) / timing.step_us;
  const double height = kTop + kRow * static_cast<double>(actions.size()) + 8;
  std::string s = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} "
      "{:.0f}\" role=\"img\"><title>schedule {}, {} micro-batches</title>"
      "<style>{}</style>\n<rect width=\"{:.0f}\" height=\"{:.0f}\" "
      "fill=\"#fff\"/>\n<text x=\"{:.0f}\" y=\"18\">{}, {} "
      "micro-batches; F forward, {}</text>\n",
      kWidth, height, schedule, micro_batches, kStyle, kWidth, height, kLeft,
      schedule, micro_batches,
      halves ? "I backward for inputs, W for weights" : "B backward");
  for (size_t d = 0; d < actions.size(); ++d) {
    const double y = kTop + kRow * static_cast<double>(d);
    s +=
        fmt::format("<text x=\"4\" y=\"{:.0f}\">device {}</text>\n", y + 16, d);
    for (size_t k = 0; k < actions[d].size(); ++k) {
      const PipelineAction& a = actions[d][k];
      const double x = kLeft + scale * timing.begin_us[d][k];
      const double width = scale * t.of(a);
      s += fmt::format(
          "<g class=\"box {0}\"><title>{1}{2}{3}</title><rect "
          "x=\"{4:.1f}\" y=\"{5:.0f}\" width=\"{6:.1f}\" "
          "height=\"{7:.0f}\"/>",
          class_of(a.pass), a.stage, a.pass, a.micro_batch, x, y, width, kBox);
      if (width > 18) {
        s += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\">{}{}</text>",
                         x + width / 2, y + 16, a.pass, a.micro_batch);
      }
      s += "</g>\n";
    }
  }
  return s + "</svg>\n";
}

}  // namespace berth::distribute
