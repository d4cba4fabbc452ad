// ParallelPlan as text, as JSON (docs/json.md), and as a file.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/bytes_text.h"
#include "base/where.h"
#include "berth/errors.h"
#include "distribute/automatic/choose_plan.h"
#include "distribute/pipeline/schedule.h"

namespace berth::distribute {

namespace {

using PlanJson = nlohmann::ordered_json;

constexpr const char* kFormat = "berth parallel plan 1";
constexpr size_t kMostDevices = 4096;  // as of a cluster file
constexpr size_t kFewNames = 16;       // that are all printed
constexpr const char* kKinds[] = {"one device", "replicas",
                                  "sharded",    "divided layers",
                                  "pipeline",   "pipeline of divided layers"};
constexpr const char* kShardings[] = {"none", "optimizer", "gradients",
                                      "parameters"};

std::string time_text(double us) {
  return us < 1e4   ? fmt::format("{:.0f} us", us)
         : us < 1e7 ? fmt::format("{:.1f} ms", us / 1e3)
                    : fmt::format("{:.1f} s", us / 1e6);
}

// "GPU:0", of several tasks "task:3/device:GPU:0"; of many names some.
std::string names_text(const std::vector<std::string>& devices, bool to) {
  const auto task_of = [](const std::string& name) {
    return name.substr(0, name.rfind("/device:"));
  };
  const bool several = std::any_of(
      devices.begin(), devices.end(),
      [&](const auto& d) { return task_of(d) != task_of(devices[0]); });
  std::vector<std::string> names;
  for (const std::string& d : devices) {
    const size_t at = several ? d.rfind("task:") : d.rfind("device:");
    names.push_back(at == d.npos ? d : d.substr(at + (several ? 0 : 7)));
  }
  const size_t n = names.size();
  if (to && n > 1) return names.front() + " to " + names.back();
  if (n <= kFewNames) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, {}, ... {} ({} devices)", names[0], names[1],
                     names[n - 1], n);
}

// Divided variables and their axes, "-" for a whole one; of many those whose
// names differ in numbers alone together, with how many there are.
std::string layouts_text(const ParallelPlan::Choice& c) {
  std::vector<std::pair<std::string, int>> lines;
  for (const auto& [name, axes] : c.layouts) {
    std::string text;
    for (const char ch : name) {
      const bool digit = ch >= '0' && ch <= '9';
      if (!digit || c.layouts.size() <= kFewNames) {
        text += ch;
      } else if (!text.ends_with('*')) {
        text += '*';
      }
    }
    text += " [";
    for (const std::string& axis : axes) {
      if (!text.ends_with('[')) text += ", ";
      text += axis.empty() ? "-" : axis;
    }
    text += ']';
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](auto& l) { return l.first == text; });
    if (same == lines.end()) {
      lines.emplace_back(text, 1);
    } else {
      ++same->second;
    }
  }
  std::string all;
  for (const auto& [text, count] : lines) {
    if (!all.empty()) all += ", ";
    all += count > 1 ? fmt::format("{} of {}", count, text) : text;
  }
  return all;
}

PlanJson json_of(const ParallelPlan::Choice& c) {
  PlanJson layouts = PlanJson::array();
  for (const auto& [name, axes] : c.layouts) {
    layouts.push_back({{"variable", name}, {"axes", axes}});
  }
  return {{"kind", kKinds[static_cast<size_t>(c.kind)]},
          {"devices", c.devices},
          {"parts", c.parts},
          {"sharding", kShardings[static_cast<size_t>(c.sharding)]},
          {"shares", c.shares},
          {"layouts", layouts},
          {"schedule", name_of(c.schedule)},
          {"micro_batches", c.micro_batches},
          {"stages", c.stages}};
}

// Reads fields by name; throws errors::InvalidArgument naming one that is
// missing or of another type.
class PlanReader {
 public:
  explicit PlanReader(const std::string& what) : what_(what) {}

  [[noreturn]] void fail(const std::string& expected) const {
    throw errors::InvalidArgument(fmt::format(
        "{} is not a plan of AutoStrategy: expected {}", what_, expected));
  }
  template <class T>
  T get(const PlanJson& j, const char* name, const char* type) const {
    const auto it = j.is_object() ? j.find(name) : j.end();
    if (!j.is_object() || it == j.end()) {
      fail(fmt::format("\"{}\", {}", name, type));
    }
    try {
      return it->template get<T>();
    } catch (const nlohmann::json::exception&) {
      fail(fmt::format("\"{}\" to be {}", name, type));
    }
  }
  int whole(const PlanJson& j, const char* name, int least, int most) const {
    const auto x = get<double>(j, name, "a number");
    if (x == std::floor(x) && x >= least && x <= most) {
      return static_cast<int>(x);
    }
    fail(fmt::format("\"{}\" to be {} to {}", name, least, most));
  }
  template <size_t n>
  size_t one_of(const PlanJson& j, const char* name,
                const char* const (&names)[n]) const {
    const auto text = get<std::string>(j, name, "a name");
    for (size_t i = 0; i < n; ++i) {
      if (text == names[i]) return i;
    }
    fail(fmt::format("\"{}\" to be one of \"{}\"", name,
                     fmt::join(names, "\", \"")));
  }

  ParallelPlan::Choice choice(const PlanJson& j) const {
    ParallelPlan::Choice c;
    c.kind = static_cast<ParallelKind>(one_of(j, "kind", kKinds));
    c.devices = get<std::vector<std::string>>(j, "devices", "a list of names");
    const auto n = static_cast<int>(c.devices.size());
    if (c.devices.empty() || c.devices.size() > kMostDevices) {
      fail(fmt::format("1 to {} \"devices\"", kMostDevices));
    }
    c.parts = whole(j, "parts", 1, n);
    if (n % c.parts != 0) fail("\"parts\" that divide the devices");
    c.sharding = static_cast<Sharding>(one_of(j, "sharding", kShardings));
    c.shares = get<std::vector<int>>(j, "shares", "a list of numbers");
    for (const PlanJson& l : get<PlanJson>(j, "layouts", "a list")) {
      c.layouts.emplace_back(get<std::string>(l, "variable", "a name"),
                             get<AxisNames>(l, "axes", "a list of names"));
    }
    c.schedule = schedule_named(get<std::string>(j, "schedule", "a name"));
    c.micro_batches = whole(j, "micro_batches", 1, 1 << 20);
    c.stages = get<std::vector<std::string>>(j, "stages", "a list of layers");
    check(c);
    return c;
  }

 private:
  // What strategies do not check themselves.
  void check(const ParallelPlan::Choice& c) const {
    const bool one = c.kind == ParallelKind::kOneDevice;
    const bool stages = c.kind == ParallelKind::kPipeline ||
                        c.kind == ParallelKind::kPipelineOfLayers;
    const bool divided = c.kind == ParallelKind::kModelParallel ||
                         c.kind == ParallelKind::kPipelineOfLayers;
    if (one && c.devices.size() != 1) fail("one device of its kind");
    if (stages == c.stages.empty()) {
      fail("\"stages\" of pipelines, and of nothing else");
    }
    if (divided != (c.parts > 1)) {
      fail("\"parts\" above 1 where layers are divided, and nowhere else");
    }
  }

  const std::string& what_;
};

}  // namespace

std::string ParallelPlan::Choice::str() const {
  const size_t n = devices.size();
  const std::string on = names_text(devices, false);
  const size_t groups = n / static_cast<size_t>(parts);
  const std::string schedule_text =
      fmt::format("{}, {} micro-batches", name_of(schedule), micro_batches);
  switch (kind) {
    case ParallelKind::kOneDevice:
      return "everything on " + on;
    case ParallelKind::kMirrored:
    case ParallelKind::kSharded: {
      std::string s = fmt::format("{} replicas on {}", n, on);
      if (!shares.empty()) {
        s += fmt::format(", shares {}", fmt::join(shares, ":"));
      }
      if (sharding != Sharding::kNone) {
        s += fmt::format(", sharded {}",
                         kShardings[static_cast<size_t>(sharding)]);
      }
      return s;
    }
    case ParallelKind::kModelParallel:
      return fmt::format("layers divided by {}{} on {}", parts,
                         groups > 1 ? fmt::format(", {} replicas", groups) : "",
                         on);
    case ParallelKind::kPipeline:
      return fmt::format("{} stages on {}, {}", stages.size() + 1, on,
                         schedule_text);
    case ParallelKind::kPipelineOfLayers:
      return fmt::format("{} stages whose layers are divided by {} on {}, {}",
                         stages.size() + 1, parts, on, schedule_text);
  }
  return "";
}

std::string ParallelPlan::str() const {
  std::string s = fmt::format("{}, batch {}: {} per step\n", choice.str(),
                              batch, time_text(step_us));
  s += fmt::format(
      "  with these costs and limits no plan is under {} (no plan can be more "
      "than {:.1f} % better); {} combinations in {:.1f} s\n",
      time_text(bound_us), 100 * gap(), candidates, search_seconds);
  s += fmt::format(
      "  of the busiest device: computing {}, sums {}, copies {}\n",
      time_text(compute_us), time_text(sums_us), time_text(copies_us));
  for (size_t d = 0, end = 0; d < peak_bytes.size(); d = end) {
    while (end < peak_bytes.size() && peak_bytes[end] == peak_bytes[d]) ++end;
    const auto first = choice.devices.begin();
    s += fmt::format("  {} {} {}\n", names_text({first + d, first + end}, true),
                     end - d > 1 ? "each hold" : "holds",
                     bytes_text(peak_bytes[d]));
  }
  if (!choice.layouts.empty()) {
    s += fmt::format("  divided variables: {}\n", layouts_text(choice));
  }
  if (!choice.stages.empty()) {
    s += fmt::format("  later stages begin with {}\n",
                     fmt::join(choice.stages, ", "));
  }
  for (const Other& o : others) {
    s += fmt::format("  not {}: {}\n", o.choice.str(), o.why);
  }
  return s;
}

std::string ParallelPlan::json() const {
  PlanJson j = {{"format", kFormat},
                {"choice", json_of(choice)},
                {"batch", batch},
                {"step_us", step_us},
                {"bound_us", bound_us},
                {"compute_us", compute_us},
                {"sums_us", sums_us},
                {"copies_us", copies_us},
                {"peak_bytes", peak_bytes},
                {"candidates", candidates},
                {"search_seconds", search_seconds},
                {"others", PlanJson::array()}};
  for (const Other& o : others) {
    j["others"].push_back(
        {{"choice", json_of(o.choice)},
         {"step_us", o.step_us > 0 ? PlanJson(o.step_us) : PlanJson(nullptr)},
         {"why", o.why}});
  }
  return j.dump(-1, ' ', false, PlanJson::error_handler_t::replace);
}

ParallelPlan ParallelPlan::parse(const std::string& text,
                                 const std::string& what) {
  const PlanReader reader(what);
  const PlanJson j = PlanJson::parse(text, nullptr, false);
  if (j.is_discarded()) reader.fail("JSON");
  if (reader.get<std::string>(j, "format", "its format") != kFormat) {
    reader.fail(fmt::format("the format \"{}\"", kFormat));
  }
  ParallelPlan plan;
  plan.choice = reader.choice(reader.get<PlanJson>(j, "choice", "an object"));
  plan.batch = reader.whole(j, "batch", 1, 1 << 30);
  const auto number = [&](const char* name) {
    return reader.get<double>(j, name, "a number");
  };
  plan.step_us = number("step_us");
  plan.bound_us = number("bound_us");
  plan.compute_us = number("compute_us");
  plan.sums_us = number("sums_us");
  plan.copies_us = number("copies_us");
  plan.peak_bytes =
      reader.get<std::vector<int64_t>>(j, "peak_bytes", "a list of numbers");
  if (plan.peak_bytes.size() != plan.choice.devices.size()) {
    reader.fail("\"peak_bytes\" of each device");
  }
  plan.candidates = reader.whole(j, "candidates", 0, 1 << 30);
  plan.search_seconds = number("search_seconds");
  for (const PlanJson& o : reader.get<PlanJson>(j, "others", "a list")) {
    Other other;
    other.choice =
        reader.choice(reader.get<PlanJson>(o, "choice", "an object"));
    const PlanJson us = reader.get<PlanJson>(o, "step_us", "a number or null");
    if (us.is_number()) other.step_us = us.get<double>();
    other.why = reader.get<std::string>(o, "why", "a text");
    plan.others.push_back(std::move(other));
  }
  return plan;
}

void ParallelPlan::save(const std::string& path, Site site) const {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary);
  file << json() << "\n";
  file.close();
  if (file && std::rename(part.c_str(), path.c_str()) == 0) return;
  std::remove(part.c_str());
  throw errors::Unavailable(fmt::format(
      "ParallelPlan.save(\"{}\"){}: cannot write it; expected a folder that "
      "exists and room for the file",
      path, where_text(nullptr, site)));
}

namespace {

ParallelPlan read_plan(const std::string& path, Site site) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) {
    throw errors::NotFound(fmt::format(
        "PlannedStrategy(\"{}\"){}: there is no such file, or it is empty; "
        "expected one that ParallelPlan.save() wrote",
        path, where_text(nullptr, site)));
  }
  return ParallelPlan::parse(text.str(),
                             fmt::format("PlannedStrategy{}: \"{}\"",
                                         where_text(nullptr, site), path));
}

}  // namespace

PlannedStrategy::PlannedStrategy(const std::string& path, Site site)
    : PlannedStrategy(read_plan(path, site), site) {}

}  // namespace berth::distribute
