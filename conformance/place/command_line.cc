// Drives the program `berth place` as an outside suite would.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "conformance/place/outcome.h"
#include "graph/graph_text.h"

namespace berth::conformance {

namespace {

struct Finished {
  int status = -1;
  std::string out;
};

Finished run(const std::string& command) {
  Finished f;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return f;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    f.out.append(buffer, n);
  }
  const int status = pclose(pipe);
  f.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return f;
}

std::string options_of(const PlaceCase& c, PlacePolicy policy) {
  return fmt::format(
      "--json --soft {} --policy {}{}{}", c.soft,
      policy == PlacePolicy::kBerth ? "default" : "tensorflow",
      c.devices.empty() ? "" : " --devices \"" + c.devices + "\"",
      c.kind == CaseKind::kPartition ? " --partition" : "");
}

void read_json(const PlaceCase& c, const std::string& text, Outcome* o) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    o->error = "no JSON";
    o->message = text;
    return;
  }
  if (json.contains("error")) {
    o->error = json["error"]["kind"];
    o->message = json["error"]["message"];
    return;
  }
  for (const auto& n : json["nodes"]) {
    o->devices[n["name"]] = short_name(n["device"]);
  }
  for (const auto& n : json["notes"]) {
    o->notes.insert(n["id"].get<std::string>() + " " +
                    n["node"].get<std::string>());
  }
  for (const auto& f : json["fallbacks"]) {
    o->fallbacks[f["node"]] = f["requested"];
  }
  if (c.kind != CaseKind::kPartition) return;
  const GraphText cut = parse_text(json["partitioned"].get<std::string>());
  o->edges = edges_of(cut.graph);
  o->devices = devices_of(cut.graph);
}

}  // namespace

Outcome run_command_line(const PlaceCase& c, PlacePolicy policy) {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    fmt::format("berth_place_{}.txt", getpid());
  std::ofstream(path) << c.text;
  const Finished f = run(fmt::format("{} place {} {} 2>/dev/null", BERTH_CLI,
                                     path.string(), options_of(c, policy)));
  std::filesystem::remove(path);
  Outcome o;
  read_json(c, f.out, &o);
  EXPECT_EQ(f.status == 0, o.error.empty()) << "exit code " << f.status;
  EXPECT_GE(f.status, 0);
  return o;
}

}  // namespace berth::conformance
