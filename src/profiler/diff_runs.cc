#include "profiler/diff_runs.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/where.h"
#include "berth/errors.h"

namespace berth::profiler {

namespace {

using Op = std::pair<std::string, std::string>;  // name, line

struct Result {
  Op op;
  RunDifference::Side side;
};

// What each result was, by when it was recorded.
std::vector<Result> results_of(const Timeline& timeline, const char* which) {
  std::vector<Result> results;
  std::map<std::tuple<Op, std::string, double>, size_t> places;
  for (const char* kind : {"checksum", "least", "most"}) {
    for (const TimelineEvent& e : timeline.events()) {
      if (e.track != "checksums" || e.kind != kind) continue;
      const std::tuple key{Op{e.name, site_text(e.site)}, e.task, e.begin_us};
      const auto bits = static_cast<uint64_t>(e.bytes);
      if (e.kind == "checksum") {
        places[key] = results.size();
        results.push_back(
            {std::get<0>(key), {true, bits, INFINITY, -INFINITY}});
      } else if (const auto at = places.find(key); at != places.end()) {
        RunDifference::Side& side = results[at->second].side;
        (e.kind == "least" ? side.least : side.most) =
            std::bit_cast<double>(bits);
      }
    }
  }
  if (!results.empty()) return results;
  throw errors::InvalidArgument(fmt::format(
      "diff-run: the {} run has no checksums; expected one that was recorded "
      "with BERTH_PROFILE_CHECKSUMS=1, or profiler::start({{.checksums = "
      "true}})",
      which));
}

std::string range_of(const RunDifference::Side& s) {
  if (!s.is_there) return "did not run";
  std::string text = fmt::format("checksum {:016x}", s.checksum);
  if (s.least <= s.most) {
    text += fmt::format(", {:.9g} to {:.9g}", s.least, s.most);
  }
  return text;
}

}  // namespace

RunDifference first_difference(const Timeline& a, const Timeline& b) {
  const std::vector<Result> of_a = results_of(a, "first");
  const std::vector<Result> of_b = results_of(b, "second");
  std::map<Op, std::vector<RunDifference::Side>> by_op;
  for (const Result& r : of_b) by_op[r.op].push_back(r.side);
  std::map<Op, size_t> runs;
  RunDifference d;
  const auto found = [&](const Op& op, size_t step) {
    d.found = true;
    std::tie(d.op, d.line) = op;
    d.step = static_cast<int64_t>(step) + 1;
    return d;
  };
  for (const Result& r : of_a) {
    const size_t step = runs[r.op]++;
    const std::vector<RunDifference::Side>& others = by_op[r.op];
    d.a = r.side;
    d.b = step < others.size() ? others[step] : RunDifference::Side{};
    if (!d.b.is_there || d.b.checksum != d.a.checksum) return found(r.op, step);
    ++d.compared;
  }
  std::map<Op, size_t> seen;
  for (const Result& r : of_b) {
    const size_t step = seen[r.op]++;
    if (step < runs[r.op]) continue;
    d.a = {};
    d.b = r.side;
    return found(r.op, step);
  }
  return d;
}

std::string RunDifference::str() const {
  if (!found) return fmt::format("equal bits in {} results\n", compared);
  return fmt::format(
      "{}{}, step {}, is the first that differs; {} results before it are "
      "equal\n  first:  {}\n  second: {}\n",
      op, line.empty() ? "" : " (" + line + ")", step, compared, range_of(a),
      range_of(b));
}

}  // namespace berth::profiler
