// What reading and placing a graph text costs: --model FILE, for example of
// tools/make_graph. Devices are those of the text.

#include "place/place_text.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "bench_common.h"

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  if (!file) {
    fmt::print(stderr, "--model {}: not a file that can be read\n", path);
    std::exit(2);
  }
  return std::move(all).str();
}

void run(const std::string& bytes, double seconds) {
  berth::GraphText text;
  const auto parse = berth_bench::measure_blocks(
      [&] { text = berth::parse_text(bytes); }, seconds / 3, 1);
  const auto line = [&](const char* what, const berth_bench::Timing& t) {
    berth_bench::Line(what, 1)
        .add("nodes", text.graph.size())
        .add("bytes", bytes.size())
        .timing(t, "ms", 1e3)
        .print();
  };
  line("place_text_parse", parse);
  for (const bool tensorflow : {false, true}) {
    berth::PlaceOptions options =
        berth::place_options(text, berth::devices_of_text(text));
    options.keep_assigned = false;
    options.soft = berth::config::SoftPlacement::kSilent;
    if (tensorflow) options.policy = berth::PlacePolicy::kTensorFlow;
    const auto place = berth_bench::measure_blocks(
        [&] { berth::place(text.graph, options); }, seconds / 3, 1);
    line(tensorflow ? "place_text_tensorflow" : "place_text", place);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const berth_bench::Args args = berth_bench::parse_args(argc, argv);
  if (args.model.empty()) {
    fmt::print(stderr, "usage: {} --model FILE [--seconds T]\n", argv[0]);
    return 2;
  }
  run(contents(args.model), args.seconds);
  return 0;
}
