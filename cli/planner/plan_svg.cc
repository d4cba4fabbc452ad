#include "cli/planner/plan_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "planner/plan_view.h"
#include "planner/units.h"

namespace berth {

namespace {

constexpr double kWidth = 1100, kLeft = 132, kRight = 30, kTop = 74;
constexpr double kCharWidth = 5.9;  // of labels, 10.5 pixels high
// Boxes narrower than this are drawn together with their neighbours.
constexpr double kThinnest = 0.35;
constexpr int32_t kMostTips = 4000;
constexpr const char* kGrey = "#b5b5b5";  // of transfers

// Light for the first ops or micro-batches, dark for the last.
std::string colour(bool backward, double share) {
  constexpr double kLight[2][3] = {{217, 230, 245}, {251, 227, 200}};
  constexpr double kDark[2][3] = {{47, 103, 168}, {192, 101, 26}};
  const auto channel = [&](int k) {
    const double light = kLight[backward][k], dark = kDark[backward][k];
    return std::lround(light + share * (dark - light));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(1), channel(2));
}

// Escapes XML's special characters; bytes that are not text become "?".
std::string xml_text(const std::string& text) {
  std::string out;
  for (const char ch : text) {
    const auto byte = static_cast<unsigned char>(ch);
    out += ch == '&'                    ? "&amp;"
           : ch == '<'                  ? "&lt;"
           : ch == '>'                  ? "&gt;"
           : ch == '"'                  ? "&quot;"
           : byte < 0x20 || byte > 0x7e ? "?"
                                        : std::string(1, ch);
  }
  return out;
}

// Returns 1, 2 or 5 times a power of ten, for five to ten steps.
double tick_step(double span) {
  const double power = std::pow(10, std::floor(std::log10(span / 5)));
  for (const double k : {1.0, 2.0, 5.0}) {
    if (span / (k * power) <= 10) return k * power;
  }
  return 10 * power;
}

class Picture {
 public:
  Picture(const PlanProblem& p, const PlanAnswer& a)
      : p_(p),
        a_(a),
        last_(std::max(a.value, a.bound.value)),
        tall_(std::clamp(520.0 / p.num_devices(), 16., 38.)),
        bottom_(kTop + 1.36 * tall_ * p.num_devices()),
        drawn_(2 * p.costs.devices.size(), -1) {
    if (!(last_ > 0)) last_ = 1;
  }

  std::string run() {
    draw_head();
    draw_axis();
    for (int32_t d = 0; d < p_.num_devices(); ++d) draw_lane(d);
    if (p_.model == PlanModel::kStep) draw_step();
    if (p_.model == PlanModel::kLoad) draw_loads();
    if (p_.model == PlanModel::kPipeline) draw_tasks();
    if (a_.bound.value > 0) {
      draw_mark(a_.bound.value, "no plan is under " + time(a_.bound.value), 32,
                " stroke-dasharray=\"5 4\"");
    }
    draw_mark(a_.value, "this plan: " + time(a_.value), 46, "");
    draw_keys();
    return out_ + "</svg>\n";
  }

 private:
  std::string time(double t) const { return time_text(t, p_.time_unit); }
  double x(double at) const {
    return kLeft + at / last_ * (kWidth - kLeft - kRight);
  }
  double y(int32_t device) const { return kTop + 1.36 * tall_ * device; }

  void text(double at, double y, double size, const char* fill,
            const char* anchor, const std::string& what) {
    fmt::format_to(to_,
                   "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" "
                   "fill=\"{}\" text-anchor=\"{}\" "
                   "pointer-events=\"none\">{}</text>\n",
                   at, y, size, fill, anchor, xml_text(what));
  }
  void rect(double left, double top, double width, double height,
            const std::string& fill, const std::string& tip) {
    fmt::format_to(to_,
                   "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" "
                   "height=\"{:.1f}\" fill=\"{}\"><title>{}</title></rect>\n",
                   left, top, width, height, fill, xml_text(tip));
  }

  void draw_head() {
    const std::string title = fmt::format(
        "{}: {} {} on {} device{}", p_.name,
        p_.model == PlanModel::kLoad ? "busiest device" : "planned step",
        time(a_.value), p_.num_devices(), p_.num_devices() == 1 ? "" : "s");
    fmt::format_to(to_,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
                   "height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" "
                   "font-family=\"sans-serif\">\n<title>{2}</title>\n"
                   "<rect width=\"{0}\" height=\"{1:.0f}\" fill=\"#fff\"/>\n",
                   kWidth, bottom_ + 122, xml_text(title));
    text(20, 28, 15, "#111", "start", title);
    text(20, 48, 12, "#555", "start",
         a_.bound.value <= 0
             ? "nothing was proved about better plans"
             : "with these costs, links and limits " + gap_text(a_.gap()));
  }

  void draw_axis() {
    const bool timed = p_.time_unit == "us";
    const char* unit = last_ >= 2e6 ? "s" : last_ >= 2e3 ? "ms" : "us";
    const double scale = !timed         ? 1
                         : last_ >= 2e6 ? 1e-6
                         : last_ >= 2e3 ? 1e-3
                                        : 1;
    const double end = last_ * scale, step = tick_step(end);
    for (double t = 0; t <= end * (1 + 1e-9); t += step) {
      const double at = x(t / scale);
      fmt::format_to(to_,
                     "<path d=\"M{0:.1f} {1}V{2:.1f}\" stroke=\"#e6e6e6\"/>\n",
                     at, kTop - 6, bottom_);
      text(at, bottom_ + 16, 11, "#555", "middle", fmt::format("{:.6g}", t));
    }
    const std::string axis =
        p_.model == PlanModel::kLoad ? "load per step" : "time";
    text(kLeft - 10, bottom_ + 16, 11, "#555", "end",
         timed ? axis + ", " + unit : axis);
  }

  void draw_lane(int32_t d) {
    const DeviceUse& use = a_.evaluation.devices[d];
    const double busy = a_.value > 0 ? 100 * use.busy / a_.value : 0;
    std::string note = fmt::format("{:.0f} % busy", busy);
    const bool sized =
        p_.time_unit == "us" || p_.costs.devices[d].memory_limit > 0;
    if (use.bytes > 0 && sized) note += ", " + size_text(use.bytes);
    const double middle = y(d) + tall_ / 2;
    rect(kLeft, y(d), kWidth - kLeft - kRight, tall_, "#f7f8fa", note);
    text(kLeft - 10, middle + (tall_ >= 26 ? -2 : 4), 12, "#222", "end",
         short_name(p_, d));
    if (tall_ >= 26) text(kLeft - 10, middle + 12, 9.5, "#777", "end", note);
  }

  // A box on the lane of a device; transfers are low ones.
  void draw_box(int32_t device, double begin, double end, bool transfer,
                const std::string& label, const std::string& name,
                const std::string& fill) {
    const double left = x(begin), right = x(end);
    double& drawn = drawn_[2 * device + transfer];
    if (right - left < kThinnest && right - drawn < kThinnest) return;
    drawn = right;
    const double width = std::max(right - left, kThinnest);
    const double high = transfer ? tall_ / 3 : tall_;
    rect(left, y(device) + tall_ - high, width, high, fill,
         p_.num_ops() > kMostTips
             ? ""
             : fmt::format("{}: {} to {} ({})", name, time(begin), time(end),
                           time(end - begin)));
    if (kCharWidth * static_cast<double>(label.size()) + 6 > width) return;
    text(left + width / 2, y(device) + tall_ / 2 + 3.5, 10.5, "#222", "middle",
         label);
  }

  void draw_op(int32_t i, double begin, double end, double share) {
    const std::string& name = p_.names[i];
    draw_box(a_.plan.device[i], begin, end, false,
             name.substr(name.rfind('/') + 1), name,
             colour(p_.backward[i] != 0, share));
  }
  void draw_transfer(const PlannedTransfer& t, int32_t on, double begin) {
    if (t.time <= 0) return;
    draw_box(on, begin, begin + t.time, true, "",
             fmt::format("{} from {} to {}", value_name(p_, t.value),
                         short_name(p_, t.from), short_name(p_, t.to)),
             kGrey);
  }

  void draw_step() {
    const Simulation& s = a_.evaluation.simulation;
    for (const int32_t i : a_.plan.sequence) {
      draw_op(i, s.start_us[i], s.end_us[i], s.start_us[i] / last_);
    }
    for (const PlannedTransfer& t :
         transfers_of(p_, a_.plan, a_.evaluation.simulation)) {
      draw_transfer(t, t.to, t.start);
    }
  }

  // Work, op by op, then transfers, value by value; those of a copy engine are
  // beside the work.
  void draw_loads() {
    std::vector<double> at(2 * p_.costs.devices.size(), 0);
    double done = 0;
    const std::vector<int32_t> order = order_of_ops(p_);
    for (const int32_t i : order) {
      double& begin = at[a_.plan.device[i]];
      const double us = p_.costs.time(i, a_.plan.device[i]).us;
      draw_op(i, begin, begin + us, done++ / static_cast<double>(order.size()));
      begin += us;
    }
    for (const PlannedTransfer& t : transfers_of(p_, a_.plan, {})) {
      for (const int32_t n : t.payers) {
        draw_transfer(t, n % p_.num_devices(), at[n]);
        at[n] += t.time;
      }
    }
  }

  // A box per stage and micro-batch.
  void draw_tasks() {
    const double m = p_.pipeline.micro_batches;
    const bool chunks = a_.plan.order == PipelineOrder::kInterleaved;
    for (const TaskTime& t : a_.evaluation.tasks) {
      const std::string number = std::to_string(t.micro_batch);
      draw_box(
          a_.evaluation.stages[t.stage].device, t.start, t.end, false,
          chunks ? fmt::format("{}.{}", t.stage, number) : number,
          fmt::format("{} of micro-batch {}, stage {}",
                      t.backward ? "backward" : "forward", number, t.stage),
          colour(t.backward, std::fmod(t.micro_batch, m) / m));
    }
  }

  void draw_mark(double value, const std::string& what, double below,
                 const char* dashes) {
    const double at = x(value);
    fmt::format_to(to_,
                   "<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"#222\" "
                   "stroke-width=\"1.3\"{}/>\n",
                   at, kTop - 8, bottom_, dashes);
    const bool right = at < kWidth / 2;
    text(at + (right ? 5 : -5), bottom_ + below, 11, "#222",
         right ? "start" : "end", what);
  }

  void draw_keys() {
    const bool tasks = p_.model == PlanModel::kPipeline;
    const char* each = tasks ? ", by micro-batch" : ", from first to last op";
    double y = bottom_ + 62;
    const auto key = [&](const std::string& from, const std::string& to,
                         const std::string& what) {
      rect(kLeft, y, 8, 11, from, "");
      rect(kLeft + 8, y, 8, 11, to, "");
      text(kLeft + 22, y + 9.5, 11, "#444", "start", what);
      y += 20;
    };
    key(colour(false, 0), colour(false, 1), std::string("forward") + each);
    key(colour(true, 0), colour(true, 1), std::string("backward") + each);
    if (!tasks) key(kGrey, kGrey, "transfers between devices");
  }

  const PlanProblem& p_;
  const PlanAnswer& a_;
  double last_;  // of the axis
  const double tall_, bottom_;
  std::vector<double> drawn_;  // per device: the ends of ops and of transfers
  std::string out_;
  std::back_insert_iterator<std::string> to_ = std::back_inserter(out_);
};

}  // namespace

std::string plan_svg(const PlanProblem& p, const PlanAnswer& a) {
  return Picture(p, a).run();
}

}  // namespace berth
