// Reports for people and for programs (docs/json.md).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/bytes_text.h"
#include "base/where.h"
#include "device/virtual_clock.h"
#include "op/contract_scope.h"
#include "place/placer.h"

namespace berth::placement {

namespace {

using Json = nlohmann::ordered_json;

std::string shown(const std::string& device) {
  return device.empty() ? "?" : short_device(device);
}

// Rows with times name their clock.
std::string timed_on(const std::string& device) {
  return shown(device) + (on_virtual_clock(device) ? " (simulated)" : "");
}

std::string in_us(double us) {
  return us < 0     ? "-"
         : us < 100 ? fmt::format("{:.1f}", us)
                    : fmt::format("{:.0f}", us);
}

// Per step; planned ones count once.
int64_t step_bytes(const TransferRow& t, int64_t steps) {
  return std::llround(static_cast<double>(t.bytes) *
                      (steps == 0 ? 1 : t.runs_per_step));
}

// Columns as wide as their widest cell; numbers right-aligned. A last column of
// text follows several columns of names.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string str(size_t left) const {
    std::vector<size_t> width(rows_[0].size());
    for (const auto& row : rows_) {
      for (size_t c = 0; c < row.size(); ++c) {
        width[c] = std::max(width[c], row[c].size());
      }
    }
    std::string s;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (size_t c = 0; c < row.size(); ++c) {
        const bool last = c + 1 == row.size();
        line += c < left || (last && left > 1)
                    ? fmt::format(" {:<{}}", row[c], width[c])
                    : fmt::format(" {:>{}}", row[c], width[c]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      s += line + "\n";
    }
    return s;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

constexpr size_t kMostRows = 20;
constexpr size_t kMostOps = 10;

template <class Rows, class Add>
std::string listed(Table table, const Rows& rows, size_t left, Add add) {
  size_t n = 0;
  for (const auto& row : rows) {
    if (n++ == kMostRows) break;
    table.add(add(row));
  }
  std::string s = table.str(left);
  if (rows.size() > kMostRows) {
    s += fmt::format("  and {} more\n", rows.size() - kMostRows);
  }
  return s;
}

std::string moved_table(const char* title,
                        const std::vector<FallbackRow>& rows) {
  if (rows.empty()) return "";
  return fmt::format("{}\n", title) +
         listed(Table({"op", "asked for", "ran on", "per step", "why"}), rows,
                3, [](const FallbackRow& f) {
                  const std::string at = site_text(f.site);
                  return std::vector<std::string>{
                      f.op, f.requested, shown(f.device), bytes_text(f.bytes),
                      at.empty() ? f.reason
                                 : fmt::format("{} ({})", f.reason, at)};
                });
}

Json site_json(Site site) {
  if (site.file == nullptr) return nullptr;
  return Json{{"file", site.file}, {"line", site.line}};
}

Json fallback_json(const FallbackRow& f) {
  return {{"op", f.op},         {"requested", f.requested},
          {"device", f.device}, {"reason", f.reason},
          {"bytes", f.bytes},   {"site", site_json(f.site)}};
}

// Unknown times are null.
Json time_json(double us) { return us < 0 ? Json(nullptr) : Json(us); }

}  // namespace

int64_t Report::transfer_bytes(const std::string& from,
                               const std::string& to) const {
  const DeviceName a = DeviceName::parse(from), b = DeviceName::parse(to);
  int64_t sum = 0;
  for (const TransferRow& t : transfers) {
    if (a.matches(DeviceId(t.from).name()) &&
        b.matches(DeviceId(t.to).name())) {
      sum += step_bytes(t, steps);
    }
  }
  return sum;
}

int64_t Report::peak_bytes(const std::string& device) const {
  const DeviceName name = DeviceName::parse(device);
  int64_t most = 0;
  for (const DeviceRow& d : devices) {
    if (name.matches(DeviceId(d.device).name())) {
      most = std::max(most, d.peak_bytes);
    }
  }
  return most;
}

int64_t Report::fallback_bytes() const {
  int64_t sum = 0;
  for (const FallbackRow& f : fallbacks) sum += f.bytes;
  return sum;
}

std::string Report::device_of(const std::string& op) const {
  for (const OpRow& row : ops) {
    if (row.op == op) return row.device;
  }
  for (const OpRow& row : ops) {
    const auto& s = row.sources;
    if (std::find(s.begin(), s.end(), op) != s.end()) return row.device;
  }
  // Lowered: "loss/Softmax" became "loss/Softmax/Exp" and others.
  for (const OpRow& row : ops) {
    if (names_op(op, row.op)) return row.device;
  }
  return "";
}

std::string Report::summary() const {
  if (fallbacks.empty()) return "";
  return fmt::format("fallbacks: {} op{}, {} per step", fallbacks.size(),
                     fallbacks.size() == 1 ? "" : "s",
                     bytes_text(fallback_bytes()));
}

namespace {

// The clocks of the devices that ran ops.
Clocks clocks_of(const Report& r) {
  Clocks clocks;
  for (const DeviceRow& d : r.devices) {
    if (d.ops > 0) clocks.add(d.device);
  }
  return clocks;
}

// One line, and the table of devices.
std::string head(const Report& r) {
  std::string s = fmt::format("placement of \"{}\"", r.name);
  s += r.steps == 0
           ? ", as planned: not run yet"
           : fmt::format(", {} step{}", r.steps, r.steps == 1 ? "" : "s");
  const Clocks clocks = clocks_of(r);
  const bool measured = r.measured_step_us >= 0;
  if (measured) {
    s += fmt::format(", {} us a step{}", in_us(r.measured_step_us),
                     clocks.mark());
    if (clocks.both()) s += "; the wall time of other devices is not in it";
  }
  // A measured step on both clocks has the time of one, an estimate that of
  // both.
  if (r.estimated_step_us >= 0 && !(measured && clocks.both())) {
    s += fmt::format(" (estimated {} us{})", in_us(r.estimated_step_us),
                     measured ? "" : clocks.mark());
  }
  s += "\n";
  return s +
         listed(Table({"device", "ops", "busy us", "estimated us", "peak",
                       "arena", "results", "variables", "arguments"}),
                r.devices, 1, [](const DeviceRow& d) {
                  return std::vector<std::string>{
                      timed_on(d.device),         std::to_string(d.ops),
                      in_us(d.measured_busy_us),  in_us(d.estimated_busy_us),
                      bytes_text(d.peak_bytes),   bytes_text(d.arena_bytes),
                      bytes_text(d.output_bytes), bytes_text(d.variable_bytes),
                      bytes_text(d.other_bytes)};
                });
}

std::string verdict_lines(const Report& r) {
  std::string s;
  for (const std::string& v : r.verdicts) s += v + "\n";
  return s;
}

std::string transfers_line(const Report& r) {
  if (r.transfers.empty()) return "";
  return fmt::format("transfers: {}, {} per step\n", r.transfers.size(),
                     bytes_text(r.transfer_bytes()));
}

// The ops that took most of a step's measured time.
std::string expensive_ops(const Report& r) {
  const auto us_of = [](const OpRow& o) {
    return o.measured_us < 0 ? 0 : o.measured_us * o.runs_per_step;
  };
  std::vector<const OpRow*> ops;
  double all[2] = {0, 0};  // by the wall clock, by a virtual one
  for (const OpRow& o : r.ops) {
    all[on_virtual_clock(o.device)] += us_of(o);
    if (us_of(o) > 0) ops.push_back(&o);
  }
  if (ops.empty()) return "";
  std::string took = all[0] > 0 ? in_us(all[0]) + " us a step" : "";
  if (all[1] > 0) {
    took += fmt::format("{}{} us a step, simulated",
                        took.empty() ? "" : " and ", in_us(all[1]));
  }
  std::stable_sort(ops.begin(), ops.end(), [&](const auto* a, const auto* b) {
    return us_of(*a) > us_of(*b);
  });
  const size_t n = std::min(ops.size(), kMostOps);
  Table table({"op", "type", "device", "us a step", "share"});
  for (size_t i = 0; i < n; ++i) {
    const OpRow& o = *ops[i];
    const double share = us_of(o) / all[on_virtual_clock(o.device)];
    table.add({o.op, o.type, timed_on(o.device), in_us(us_of(o)),
               fmt::format("{:4.1f} %", 100 * share)});
  }
  return (n == 1 ? std::string("most expensive op, of ")
                 : fmt::format("{} most expensive ops, of ", n)) +
         fmt::format("{}, which took {}\n", ops.size(), took) + table.str(3);
}

}  // namespace

std::string Report::brief() const {
  std::string s = head(*this) + verdict_lines(*this) + transfers_line(*this);
  if (!plan.empty()) s += plan + "\n";
  if (!fallbacks.empty()) s += summary() + "\n";
  return s;
}

std::string Report::str() const {
  std::string s = head(*this) + verdict_lines(*this) + transfers_line(*this);
  if (!plan.empty()) s += plan + "\n";
  if (!transfers.empty()) {
    s += listed(
        Table({"value", "from", "to", "per step", "cause"}), transfers, 3,
        [&](const TransferRow& t) {
          const std::string at = site_text(t.site);
          return std::vector<std::string>{
              t.value, shown(t.from), shown(t.to),
              bytes_text(step_bytes(t, steps)),
              at.empty() ? t.cause : fmt::format("{} ({})", t.cause, at)};
        });
  }
  if (!fallbacks.empty()) s += moved_table(summary().c_str(), fallbacks);
  s += moved_table("asked for elsewhere", moved);
  return s + expensive_ops(*this);
}

std::string Report::json() const {
  Json j = {{"name", name},
            {"steps", steps},
            {"estimated_step_us", time_json(estimated_step_us)},
            {"measured_step_us", time_json(measured_step_us)}};
  if (!plan.empty()) j["plan"] = plan;
  if (!verdicts.empty()) j["verdicts"] = verdicts;
  for (const char* list :
       {"devices", "transfers", "fallbacks", "moved", "ops"}) {
    j[list] = Json::array();
  }
  for (const DeviceRow& d : devices) {
    j["devices"].push_back(
        {{"device", d.device},
         {"ops", d.ops},
         {"estimated_busy_us", time_json(d.estimated_busy_us)},
         {"measured_busy_us", time_json(d.measured_busy_us)},
         {"peak_bytes", d.peak_bytes},
         {"arena_bytes", d.arena_bytes},
         {"output_bytes", d.output_bytes},
         {"variable_bytes", d.variable_bytes},
         {"other_bytes", d.other_bytes}});
  }
  for (const TransferRow& t : transfers) {
    j["transfers"].push_back({{"value", t.value},
                              {"from", t.from},
                              {"to", t.to},
                              {"bytes", t.bytes},
                              {"runs_per_step", t.runs_per_step},
                              {"measured_us", time_json(t.measured_us)},
                              {"cause", t.cause},
                              {"readers", t.readers},
                              {"site", site_json(t.site)}});
  }
  for (const FallbackRow& f : fallbacks) {
    j["fallbacks"].push_back(fallback_json(f));
  }
  for (const FallbackRow& f : moved) j["moved"].push_back(fallback_json(f));
  for (const OpRow& o : ops) {
    j["ops"].push_back({{"op", o.op},
                        {"type", o.type},
                        {"device", o.device},
                        {"requested", o.requested},
                        {"kernel", o.kernel},
                        {"runs_per_step", o.runs_per_step},
                        {"measured_us", time_json(o.measured_us)},
                        {"sources", o.sources},
                        {"site", site_json(o.site)}});
  }
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace berth::placement
