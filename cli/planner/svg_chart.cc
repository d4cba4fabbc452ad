#include "cli/planner/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace berth {

namespace {

constexpr double kWidth = 1100, kLeft = 132, kRight = 30, kTop = 74;
constexpr double kSample = 16;      // of a colour, in the legend
constexpr double kCharWidth = 5.9;  // of labels, 10.5 pixels high
// Narrower boxes are drawn together with their neighbours.
constexpr double kThinnest = 0.35;
constexpr size_t kMostTips = 4000, kMostRows = 6;
constexpr const char* kOutline = " stroke=\"#b3261e\" stroke-width=\"1.5\"";

// Returns 1, 2 or 5 times a power of ten, for five to ten steps.
double tick_step(double span) {
  const double power = std::pow(10, std::floor(std::log10(span / 5)));
  for (const double k : {1.0, 2.0, 5.0}) {
    if (span / (k * power) <= 10) return k * power;
  }
  return 10 * power;
}

int channel(const std::string& colour, size_t k) {
  return std::stoi(colour.substr(1 + 2 * k, 2), nullptr, 16);
}

const char* ink_on(const std::string& fill) {
  const double light = 0.3 * channel(fill, 0) + 0.59 * channel(fill, 1) +
                       0.11 * channel(fill, 2);
  return light < 130 ? "#ffffff" : "#222222";
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : c_(chart) {
    for (const Chart::Box& b : c_.boxes) last_ = std::max(last_, b.end);
    for (const Chart::Mark& m : c_.marks) last_ = std::max(last_, m.at);
    if (!(last_ > 0) || !std::isfinite(last_)) last_ = 1;
    place_lanes();
  }

  std::string run() {
    const double height =
        bottom_ + 62 + 20 * static_cast<double>(c_.keys.size());
    fmt::format_to(to_,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
                   "height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" "
                   "font-family=\"sans-serif\" font-size=\"12\">\n"
                   "<title>{2}</title>\n"
                   "<defs><pattern id=\"hatch\" width=\"5\" height=\"5\" "
                   "patternUnits=\"userSpaceOnUse\" "
                   "patternTransform=\"rotate(45)\"><rect width=\"5\" "
                   "height=\"5\" fill=\"#f4f4f4\"/><rect width=\"1.6\" "
                   "height=\"5\" fill=\"#8a8a8a\"/></pattern></defs>\n"
                   "<rect width=\"{0}\" height=\"{1:.0f}\" fill=\"#fff\"/>\n",
                   kWidth, height, xml_text(c_.title));
    text(20, 28, 15, "#111", "start", c_.title, "font-weight=\"600\"");
    text(20, 48, 12, "#555", "start", c_.subtitle);
    draw_axis();
    draw_lanes();
    draw_boxes();
    draw_marks();
    draw_keys();
    return out_ + "</svg>\n";
  }

 private:
  double x(double at) const {
    return kLeft + at / last_ * (kWidth - kLeft - kRight);
  }

  // Overlapping boxes go to different rows of a lane, each to the first free.
  void place_lanes() {
    row_.assign(c_.boxes.size(), 0);
    std::vector<size_t> order(c_.boxes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {},
                             [&](size_t k) { return c_.boxes[k].begin; });
    std::vector<std::vector<double>> ends(c_.lanes.size());
    for (const size_t k : order) {
      const Chart::Box& b = c_.boxes[k];
      std::vector<double>& rows = ends[b.lane];
      size_t r = 0;
      while (r < rows.size() && rows[r] > b.begin + 1e-9 * last_) ++r;
      if (r == rows.size() && r < kMostRows) rows.push_back(0);
      r = std::min(r, rows.size() - 1);
      rows[r] = std::max(rows[r], b.end);
      row_[k] = r;
    }
    const double thick =
        std::ranges::count(c_.lanes, false, &Chart::Lane::thin);
    const double tall = std::clamp(520.0 / std::max(thick, 1.0), 16., 38.);
    double y = kTop;
    for (size_t l = 0; l < c_.lanes.size(); ++l) {
      const bool thin = c_.lanes[l].thin;
      y += thin ? 2 : (l == 0 ? 0 : tall * 0.36);
      const double height = thin ? std::max(7.0, tall * 0.32) : tall;
      lanes_.push_back({y, height, std::max<size_t>(ends[l].size(), 1)});
      y += height;
    }
    bottom_ = y + 8;
  }

  void text(double at, double y, double size, const char* fill,
            const char* anchor, const std::string& what,
            const char* more = "") {
    fmt::format_to(to_,
                   "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" "
                   "fill=\"{}\" text-anchor=\"{}\" {}>{}</text>\n",
                   at, y, size, fill, anchor, more, xml_text(what));
  }

  void rect(double left, double top, double width, double height,
            const std::string& fill, const char* more = "",
            const std::string& tip = "") {
    fmt::format_to(to_,
                   "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" "
                   "height=\"{:.1f}\" fill=\"{}\"{}",
                   left, top, width, height, fill, more);
    out_ +=
        tip.empty() ? "/>\n" : "><title>" + xml_text(tip) + "</title></rect>\n";
  }

  void draw_axis() {
    const double step = tick_step(last_ * c_.scale);
    for (double t = 0; t <= last_ * c_.scale * (1 + 1e-9); t += step) {
      const double at = x(t / c_.scale);
      fmt::format_to(to_,
                     "<path d=\"M{0:.1f} {1}V{2:.1f}\" stroke=\"#e6e6e6\"/>\n",
                     at, kTop - 6, bottom_);
      text(at, bottom_ + 16, 11, "#555", "middle", fmt::format("{:.6g}", t));
    }
    fmt::format_to(to_, "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#999\"/>\n",
                   kLeft, bottom_, kWidth - kRight);
    text(kLeft - 10, bottom_ + 16, 11, "#555", "end", c_.axis);
  }

  void draw_lanes() {
    for (size_t l = 0; l < c_.lanes.size(); ++l) {
      const Place& p = lanes_[l];
      rect(kLeft, p.y, kWidth - kLeft - kRight, p.height, "#f7f8fa");
      const Chart::Lane& lane = c_.lanes[l];
      const bool two = !lane.note.empty() && p.height >= 26;
      const double middle = p.y + p.height / 2;
      text(kLeft - 10, middle + (two ? -2 : 4), lane.thin ? 9.5 : 12,
           lane.thin ? "#777" : "#222", "end", lane.name);
      if (two) text(kLeft - 10, middle + 12, 9.5, "#777", "end", lane.note);
    }
  }

  void draw_boxes() {
    const bool tips = c_.boxes.size() <= kMostTips;
    double done = -1;  // end of the last box drawn, and its row
    size_t done_at = 0;
    for (size_t k = 0; k < c_.boxes.size(); ++k) {
      const Chart::Box& b = c_.boxes[k];
      const double left = x(b.begin), right = x(b.end);
      const size_t at = b.lane * kMostRows + row_[k];
      // Skip most boxes in a row of tiny ones.
      if (right - left < kThinnest && done_at == at &&
          right - done < kThinnest) {
        continue;
      }
      done = right;
      done_at = at;
      draw_box(b, row_[k], left, std::max(right - left, kThinnest), tips);
    }
  }

  void draw_box(const Chart::Box& b, size_t row, double left, double width,
                bool tips) {
    const Place& lane = lanes_[b.lane];
    const double height = lane.height / static_cast<double>(lane.rows);
    const double y = lane.y + height * static_cast<double>(row);
    rect(left, y, width, height, b.hatched ? "url(#hatch)" : b.fill,
         b.outlined  ? kOutline
         : width > 3 ? " stroke=\"#fff\" stroke-width=\"0.6\""
                     : "",
         tips ? b.tip : "");
    if (b.label.empty() || height < 11 ||
        kCharWidth * static_cast<double>(b.label.size()) + 6 > width) {
      return;
    }
    text(left + width / 2, y + height / 2 + 3.5, 10.5,
         b.hatched ? "#222222" : ink_on(b.fill), "middle", b.label,
         "pointer-events=\"none\"");
  }

  void draw_marks() {
    size_t k = 0;
    for (const Chart::Mark& m : c_.marks) {
      if (!std::isfinite(m.at)) continue;
      const double at = x(m.at);
      fmt::format_to(to_,
                     "<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"#222\" "
                     "stroke-width=\"1.3\"{}/>\n",
                     at, kTop - 8, bottom_,
                     m.dashed ? " stroke-dasharray=\"5 4\"" : "");
      const bool right = at < kWidth / 2;
      text(at + (right ? 5 : -5), bottom_ + 32 + 14 * static_cast<double>(k++),
           11, "#222", right ? "start" : "end", m.text);
    }
  }

  void draw_keys() {
    double y = bottom_ + 56;
    for (const Chart::Key& key : c_.keys) {
      const bool alone = key.fill.empty() && !key.hatched;
      if (!alone) {
        const std::string& end = key.fill_end.empty() ? key.fill : key.fill_end;
        rect(kLeft, y, kSample, 11, key.hatched ? "url(#hatch)" : key.fill,
             key.outlined ? kOutline : "");
        if (end != key.fill) rect(kLeft + kSample / 2, y, kSample / 2, 11, end);
      }
      text(kLeft + (alone ? 0 : kSample + 6), y + 9.5, 11, "#444", "start",
           key.text);
      y += 20;
    }
  }

  struct Place {
    double y, height;
    size_t rows;
  };
  const Chart& c_;
  double last_ = 0, bottom_ = 0;
  std::vector<Place> lanes_;
  std::vector<size_t> row_;  // per box
  std::string out_;
  std::back_insert_iterator<std::string> to_ = std::back_inserter(out_);
};

}  // namespace

std::string xml_text(const std::string& text) {
  std::string out;
  for (const char ch : text) {
    const auto byte = static_cast<unsigned char>(ch);
    if (ch == '&') {
      out += "&amp;";
    } else if (ch == '<') {
      out += "&lt;";
    } else if (ch == '>') {
      out += "&gt;";
    } else if (ch == '"') {
      out += "&quot;";
    } else {
      out += byte < 0x20 || byte > 0x7e ? '?' : ch;
    }
  }
  return out;
}

std::string mix(const std::string& from, const std::string& to, double share) {
  const auto between = [&](size_t k) {
    const double a = channel(from, k), b = channel(to, k);
    return static_cast<int>(a + std::clamp(share, 0.0, 1.0) * (b - a) + 0.5);
  };
  return fmt::format("#{:02x}{:02x}{:02x}", between(0), between(1), between(2));
}

std::string draw_svg(const Chart& chart) { return Drawing(chart).run(); }

}  // namespace berth
