// berth report: where the time of a recorded program went, as a page or JSON.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/bytes_text.h"
#include "cli/commands.h"
#include "cli/place_output.h"
#include "io/atomic_file.h"
#include "profiler/event_index.h"
#include "profiler/read_perfetto.h"
#include "profiler/report_page.h"

namespace berth::cli {

namespace {

struct ReportArguments {
  std::vector<std::string> traces, compared;
  std::string output = "report.html";
  bool json = false;
};

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

// "worker:1" of "fit.worker-1.pftrace", as berth launch names the files.
std::string task_of(const std::string& path) {
  const std::string name = file_name(path);
  const size_t dot = name.rfind('.'), dash = name.rfind('-');
  if (dot == name.npos || dash == name.npos || dash < dot) return name;
  return name.substr(dot + 1, dash - dot - 1) + ":" + name.substr(dash + 1);
}

struct Traces {
  profiler::Timeline timeline;
  std::vector<profiler::TaskClock> clocks;
};

Traces read_traces(const std::vector<std::string>& paths) {
  std::vector<profiler::TaskEvents> all;
  for (const std::string& path : paths) {
    all.push_back(profiler::read_events(path));
    all.back().task = task_of(path);
    profiler::shorten_devices(&all.back().events);
  }
  std::vector<profiler::TaskClock> clocks = profiler::clocks_of(all);
  return {profiler::joined(std::move(all), clocks), clocks};
}

void print_advice(const profiler::Analysis& a) {
  fmt::print("{}\nstep: {:.0f} us (median of {}), {:.1f} % explained\n",
             a.verdict, a.step_us, a.steps, 100 * a.explained);
  for (const profiler::Advice& v : a.advice) {
    fmt::print("- {}: {:.0f} us ({:.0f} %) of a step{}\n", v.title, v.gain_us,
               100 * v.share, v.line.empty() ? "" : "; " + v.line);
  }
}

void report(const ReportArguments& o) {
  if (o.traces.empty() == o.compared.empty()) {
    throw UsageError("report: expected traces, or --compare A B");
  }
  if (report_snapshot(o.traces, o.output)) return;
  std::vector<profiler::OpDifference> differences;
  std::vector<std::string> shown = o.traces;
  if (!o.compared.empty()) shown = {o.compared[1]};
  const Traces traces = read_traces(shown);
  const profiler::EventIndex index(traces.timeline);
  profiler::Analysis analysis = profiler::analyze(index);
  analysis.clocks = traces.clocks;
  std::string title = file_name(shown[0]);
  if (!o.compared.empty()) {
    differences = profiler::compare(
        profiler::analyze(read_traces({o.compared[0]}).timeline), analysis);
    title += " against " + file_name(o.compared[0]);
  }
  if (o.json) {
    Json document = profiler::to_json(analysis);
    if (!o.compared.empty()) {
      document["compared"] = profiler::to_json(differences);
    }
    print(document);
    return;
  }
  const std::string page =
      profiler::report_page(index, analysis, title, differences);
  io::AtomicFile file(o.output, "report: -o");
  file.append(page.data(), page.size());
  file.commit();
  print_advice(analysis);
  fmt::print("{} ({})\n", o.output,
             bytes_text(static_cast<int64_t>(page.size())));
}

}  // namespace

void add_report(CLI::App& program) {
  auto o = std::make_shared<ReportArguments>();
  CLI::App* report_command = program.add_subcommand(
      "report", "Shows where the time of a recorded program went, as a page");
  report_command->add_option(
      "trace", o->traces,
      "files that profiler::Timeline::write() wrote in Perfetto's format; "
      "several: tasks of one run");
  report_command->add_option("-o,--output", o->output, "the page")
      ->capture_default_str();
  report_command->add_flag("--json", o->json,
                           "as JSON (docs/json.md) instead of a page");
  report_command
      ->add_option("--compare", o->compared,
                   "two traces: shows the second, op by op against the first")
      ->expected(2);
  report_command->callback([o] { report(*o); });
}

}  // namespace berth::cli
