// Doppler's graphs: a line with the number of nodes, inputs among them; the
// inputs; sources and targets of the edges; a line "compute,transfer[,type]"
// per node that is not an input. Edges count only these nodes.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "berth/errors.h"
#include "cli/planner/file_graph.h"
#include "cli/planner/formats.h"

namespace berth {

namespace {

constexpr double kUnits = 1e10;  // their simulator divides its result by this

[[noreturn]] void bad_file(const std::string& name, const std::string& what) {
  throw errors::InvalidArgument(name + ": " + what);
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class Reader {
 public:
  Reader(const std::string& text, const std::string& name)
      : rest_(text), name_(name) {}

  void next_line(const char* expected) {
    if (rest_.empty()) {
      bad_file(name_, fmt::format("ends after line {}; expected {}", number_,
                                  expected));
    }
    ++number_;
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    skip_spaces();
  }
  bool at_end() const {
    return std::all_of(rest_.begin(), rest_.end(),
                       [](char c) { return is_space(c) || c == '\n'; });
  }

  // Reads numbers separated by commas or spaces up to anything else.
  std::vector<int64_t> numbers() {
    std::vector<int64_t> all;
    while (!line_.empty() && line_[0] >= '0' && line_[0] <= '9') {
      int64_t n = 0;
      const auto [end, error] =
          std::from_chars(line_.data(), line_.data() + line_.size(), n);
      if (error != std::errc()) {
        bad(fmt::format("\"{}\"", line_.substr(0, 24)),
            "numbers below 9223372036854775808");
      }
      line_.remove_prefix(static_cast<size_t>(end - line_.data()));
      all.push_back(n);
      skip_spaces();
      if (line_.empty() || line_[0] != ',') continue;
      line_.remove_prefix(1);
      skip_spaces();
    }
    return all;
  }
  // Reads a line of numbers only.
  std::vector<int64_t> only_numbers(const char* what) {
    next_line(what);
    std::vector<int64_t> all = numbers();
    if (!line_.empty()) bad(fmt::format("\"{}\"", line_.substr(0, 24)), what);
    return all;
  }
  // Reads a word to the end of the line; empty if there is none.
  std::string word() {
    size_t n = line_.size();
    while (n > 0 && is_space(line_[n - 1])) --n;
    const std::string w(line_.substr(0, n));
    const bool good = std::all_of(w.begin(), w.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    });
    if (!good) bad(fmt::format("\"{}\"", w.substr(0, 24)), "a type of letters");
    return w;
  }

  [[noreturn]] void bad(const std::string& found, const std::string& expected) {
    bad_file(name_, fmt::format("line {} has {}; expected {}", number_, found,
                                expected));
  }

 private:
  void skip_spaces() {
    while (!line_.empty() && is_space(line_[0])) line_.remove_prefix(1);
  }

  std::string_view rest_, line_;
  const std::string& name_;
  int64_t number_ = 0;
};

// Reads the edges' lines: per op, its inputs.
std::vector<std::vector<int32_t>> read_edges(Reader& r, size_t nodes) {
  const auto ends = [&](const char* what) {
    std::vector<int64_t> ids = r.only_numbers(what);
    for (const int64_t id : ids) {
      if (id >= static_cast<int64_t>(nodes)) {
        r.bad(fmt::format("node {}", id),
              fmt::format("0 to {}: nodes that are no inputs", nodes - 1));
      }
    }
    return ids;
  };
  const std::vector<int64_t> from = ends("the sources of the edges");
  const std::vector<int64_t> to = ends("the targets of the edges");
  if (from.size() != to.size()) {
    r.bad(fmt::format("{} targets", to.size()),
          fmt::format("{}, one for each source", from.size()));
  }
  std::vector<std::vector<int32_t>> inputs(nodes);
  for (size_t e = 0; e < from.size(); ++e) {
    inputs[to[e]].push_back(from[e]);
  }
  return inputs;
}

// Returns 8 for "8gpu_full_transformer.txt".
int devices_of_name(const std::string& name) {
  const std::string base = name.substr(name.rfind('/') + 1);
  int n = 0;
  const auto [end, error] =
      std::from_chars(base.data(), base.data() + base.size(), n);
  const std::string_view rest(end, base.data() + base.size());
  return error == std::errc() && rest.starts_with("gpu_") && n > 0 ? n : 4;
}

// Reads the number of nodes that are not inputs, at most the text's length.
size_t read_count(Reader& r, size_t text_size) {
  const std::vector<int64_t> count = r.only_numbers("the number of nodes");
  if (count.size() != 1) {
    r.bad(fmt::format("{} numbers", count.size()), "one, the number of nodes");
  }
  const std::vector<int64_t> inputs =
      r.only_numbers("the inputs among the nodes");
  const int64_t nodes = count[0] - static_cast<int64_t>(inputs.size());
  if (nodes < 1) {
    r.bad(fmt::format("{} inputs of {} nodes", inputs.size(), count[0]),
          "nodes beside the inputs");
  }
  if (static_cast<size_t>(nodes) > text_size) {
    r.bad(fmt::format("{} nodes beside the inputs", nodes),
          fmt::format("as many as its {} bytes describe", text_size));
  }
  return static_cast<size_t>(nodes);
}

}  // namespace

PlanProblem read_doppler(const std::string& text, const std::string& name,
                         int devices) {
  if (devices == 0) devices = devices_of_name(name);
  if (devices < 1 || devices > kMaxPlaceDevices) {
    bad_file(name, fmt::format("asks for {} devices; expected 1 to {}", devices,
                               kMaxPlaceDevices));
  }
  Reader r(text, name);
  PlanProblem p;
  p.name = name;
  p.time_unit = "";
  const size_t nodes = read_count(r, text.size());
  std::vector<std::vector<int32_t>> inputs = read_edges(r, nodes);
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < nodes; ++i) {
    r.next_line("\"compute,transfer\" of each node");
    const std::vector<int64_t> costs = r.numbers();
    const std::string type = r.word();
    if (costs.size() < 2) {
      r.bad(fmt::format("{} of 2 numbers", costs.size()),
            "\"compute,transfer\"");
    }
    const double us = static_cast<double>(costs[0]) / kUnits;
    p.costs.times.push_back({us, 0, CostOrigin::kDeclared});
    bytes.push_back(costs[1]);
    p.names.push_back(type.empty() ? std::to_string(i)
                                   : fmt::format("{}_{}", type, i));
    p.ids.push_back(static_cast<int64_t>(i));
  }
  if (!r.at_end()) {
    r.next_line("");
    r.bad("more", fmt::format("the end, behind {} nodes", nodes));
  }
  p.costs.classes.push_back(
      {.name = "GPU", .type = "GPU", .origin = CostOrigin::kDeclared});
  set_graph(p, std::move(inputs), bytes);
  for (int d = 0; d < devices; ++d) {
    p.costs.devices.push_back(
        {fmt::format("GPU:{}", d), 0, 0, CopyRule::kFree, -1});
  }
  p.costs.links.assign(devices * devices,
                       {0, kUnits, -1, CostOrigin::kDeclared});
  check_problem(p);
  return p;
}

}  // namespace berth
