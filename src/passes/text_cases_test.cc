// Text in, text out: testdata/<pass>.txt holds cases "graph before, ---,
// graph after". BERTH_UPDATE=1 rewrites the graphs after; read the diff: what
// is right follows from the rules of the pass, not from its output.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "graph/graph.h"
#include "passes/fuse.h"
#include "passes/fuse_products.h"
#include "passes/merge_updates.h"
#include "passes/pipeline.h"

namespace berth {
namespace {

constexpr const char* kHead = "berth-graph 1\ngraph test\n";

struct Case {
  std::string title;  // "case ..." and the comments below it
  std::string before, after;
};

std::string file_of(const std::string& pass) {
  return std::filesystem::path(BERTH_SOURCE_DIR) / "src/passes/testdata" /
         (pass + ".txt");
}

std::vector<Case> read_cases(const std::string& pass) {
  std::ifstream in(file_of(pass));
  EXPECT_TRUE(in) << file_of(pass);
  std::vector<Case> cases;
  std::string* part = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("case ")) {
      cases.push_back({line + "\n", "", ""});
      part = &cases.back().before;
    } else if (cases.empty() || line.empty()) {
      continue;
    } else if (line[0] == '#') {
      cases.back().title += line + "\n";
    } else if (line == "---") {
      part = &cases.back().after;
    } else {
      *part += line + "\n";
    }
  }
  return cases;
}

void write_cases(const std::string& pass, const std::vector<Case>& cases) {
  std::ofstream out(file_of(pass));
  const char* blank = "";
  for (const Case& c : cases) {
    out << std::exchange(blank, "\n") << c.title << c.before << "---\n"
        << c.after;
  }
}

std::string run(const std::string& before, void (*pass)(Graph&)) {
  Graph graph = parse_graph(kHead + before);
  verify(graph);
  pass(graph);
  verify(graph);
  const std::string text = print(graph);
  EXPECT_TRUE(text.starts_with(kHead)) << text;
  return text.substr(std::string(kHead).size());
}

void check(const std::string& pass, void (*run_pass)(Graph&)) {
  std::vector<Case> cases = read_cases(pass);
  EXPECT_GT(cases.size(), 3u);
  const bool update = std::getenv("BERTH_UPDATE") != nullptr;
  for (Case& c : cases) {
    SCOPED_TRACE(c.title);
    const std::string after = run(c.before, run_pass);
    if (update) {
      c.after = after;
    } else {
      EXPECT_EQ(after, c.after);
    }
  }
  if (update) write_cases(pass, cases);
}

TEST(PassTexts, EachPassDoesWhatItsRulesSay) {
  for (const Pass& pass : device_free_passes()) {
    SCOPED_TRACE(pass.name);
    check(pass.name, pass.run);
  }
}
TEST(PassTexts, ThePipelineReachesAFixpoint) {
  check("pipeline", [](Graph& g) { run_device_free_passes(g); });
}

TEST(PassTexts, FuseJoinsElementwiseOpsOfADevice) {
  check("fuse", [](Graph& g) {
    fuse(g, [](DeviceId device, DType dtype) {
      return device.text().find("CPU") != std::string::npos && dtype != float16;
    });
  });
}

TEST(PassTexts, FuseProductsTakesWhatIsAtTheirEnds) {
  check("fuse_products", [](Graph& g) {
    fuse_products(g, [](const Node& n) {
      return n.assigned.text().find("GPU") != std::string::npos &&
             n.outputs[0].dtype == float32;
    });
  });
}

TEST(PassTexts, MergeUpdatesJoinsSmallUpdatesOfOneKind) {
  check("merge_updates", [](Graph& g) {
    merge_updates(g, [](const Node& n) {
      return n.assigned.text().find("CPU") != std::string::npos;
    });
  });
}

}  // namespace
}  // namespace berth
