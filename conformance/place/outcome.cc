#include "conformance/place/outcome.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "berth/errors.h"
#include "graph/graph_text.h"
#include "place/place_text.h"
#include "place/schedule.h"

namespace berth::conformance {

namespace {

bool sends(const Node& n) {
  return n.op->name() == "_Transfer" || n.op->name() == "_HandOver";
}

// What a node reads, seen through transfers: "a:0".
std::string origin(const Graph& g, ValueRef v) {
  while (sends(g[v.node])) v = g[v.node].inputs[0];
  return fmt::format("{}:{}", g[v.node].name, v.output);
}

// Copies of constants are told by their names: "c/to_GPU:1".
std::string copied_from(const std::string& name) {
  const size_t at = name.rfind("/to_");
  return at == std::string::npos ? "" : name.substr(0, at);
}

bool made_by_partition(const Node& n) {
  return sends(n) || (n.op->name() == "Const" && !copied_from(n.name).empty());
}

// A cut keeps what every node reads and waits for, and leaves data edges of
// one device alone.
void expect_same_meaning(const Graph& before, const Graph& after) {
  std::map<std::string, int32_t> position;
  for (int32_t i = 0; i < after.size(); ++i) position[after[i].name] = i;
  for (const Node& old : before.nodes) {
    if (sends(old) && !position.contains(old.name)) continue;  // nobody read it
    ASSERT_TRUE(position.contains(old.name)) << old.name << " is gone";
    const Node& n = after[position[old.name]];
    ASSERT_EQ(n.inputs.size(), old.inputs.size()) << old.name;
    for (size_t i = 0; i < old.inputs.size(); ++i) {
      const std::string was = origin(before, old.inputs[i]);
      const Node& from = after[n.inputs[i].node];
      if (from.op->name() == "Const" && !copied_from(from.name).empty()) {
        EXPECT_EQ(copied_from(from.name) + ":0", was) << old.name;
      } else {
        EXPECT_EQ(origin(after, n.inputs[i]), was) << old.name;
      }
    }
  }
}

// As `berth place --json` says it.
const char* kind_of(const errors::Error& e) {
  switch (e.code()) {
    case errors::Code::kInvalidArgument:
      return "InvalidArgument";
    case errors::Code::kUnimplemented:
      return "Unimplemented";
    default:
      return "Internal";
  }
}

}  // namespace

std::multiset<std::string> edges_of(const Graph& g) {
  std::multiset<std::string> edges;
  for (const Node& n : g.nodes) {
    const std::string to = short_name(n.assigned.text());
    if (sends(n)) {
      const bool copy = n.op->name() == "_Transfer";
      edges.insert(fmt::format("{} {} -> {}", copy ? "transfer" : "hand-over",
                               origin(g, n.inputs[0]), to));
    } else if (made_by_partition(n)) {
      edges.insert(fmt::format("copy {} -> {}", copied_from(n.name), to));
    } else {
      for (const int32_t c : n.controls) {
        edges.insert(fmt::format("control {} -> {}", g[c].name, n.name));
      }
    }
  }
  return edges;
}

std::map<std::string, std::string> devices_of(const Graph& g) {
  std::map<std::string, std::string> devices;
  for (const Node& n : g.nodes) {
    if (!made_by_partition(n)) devices[n.name] = short_name(n.assigned.text());
  }
  return devices;
}

Outcome run_here(const PlaceCase& c, PlacePolicy policy) {
  Outcome o;
  try {
    GraphText text = parse_text(c.text);
    Graph& graph = text.graph;
    PlaceOptions options =
        place_options(text, c.devices.empty() ? devices_of_text(text)
                                              : devices_of_list(c.devices));
    options.soft = c.soft_policy();
    options.policy = policy;
    const Placement placement = place(graph, options);
    verify(graph);
    for (const PlaceNote& n : placement.notes) {
      o.notes.insert(n.id + " " + graph[n.node].name);
    }
    for (const PlaceFallback& f : placement.fallbacks) {
      o.fallbacks[graph[f.node].name] = f.requested.text();
    }
    if (c.kind == CaseKind::kPartition) {
      const Graph before = graph;
      partition(graph);
      verify(graph);
      expect_same_meaning(before, graph);
      o.edges = edges_of(graph);
    }
    o.devices = devices_of(graph);
  } catch (const errors::Error& e) {
    o.error = kind_of(e);
    o.message = e.what();
  }
  return o;
}

namespace {

// Collects what differs, one line each.
class Complaints {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    all_ += fmt::format(text, std::forward<Args>(args)...) + "\n";
  }
  template <class T>
  void equal(const char* what, const T& got, const T& wanted) {
    if (got == wanted) return;
    add("{}: {}; expected {}", what, testing::PrintToString(got),
        testing::PrintToString(wanted));
  }
  void holds(const std::string& text, const std::string& word) {
    if (text.find(word) == text.npos) add("no '{}' in: {}", word, text);
  }
  std::string str() const { return all_; }

 private:
  std::string all_;
};

void compare_devices(const PlaceCase& c, const Expected& expected,
                     const Outcome& got, Complaints* wrong) {
  for (const auto& [node, device] : expected.devices) {
    const auto it = got.devices.find(node);
    if (it == got.devices.end()) {
      wrong->add("no node {}", node);
    } else if (device != "*" && device != it->second) {
      wrong->add("{} is on {}; expected {}", node, it->second, device);
    }
  }
  if (c.kind == CaseKind::kPartition) return;
  for (const auto& [node, device] : got.devices) {
    if (!expected.devices.contains(node)) {
      wrong->add("the case does not say where {} is", node);
    }
  }
}

}  // namespace

std::string difference(const PlaceCase& c, const Expected& expected,
                       const Outcome& got) {
  Complaints wrong;
  if (!expected.error.empty()) {
    if (got.error.empty()) {
      wrong.add("no error; expected {}", expected.error);
    } else if (expected.error != "*") {
      wrong.equal("error", got.error, expected.error);
    }
    for (const std::string& word : expected.words) {
      wrong.holds(got.message, word);
    }
    return wrong.str();
  }
  if (!got.error.empty()) {
    wrong.add("error {}: {}", got.error, got.message);
    return wrong.str();
  }
  compare_devices(c, expected, got, &wrong);
  if (c.kind == CaseKind::kPartition) {
    wrong.equal("edges", got.edges, expected.edges);
  }
  wrong.equal("notes", got.notes, expected.notes);
  for (const auto& [node, request] : got.fallbacks) {
    if (!expected.fallbacks.contains(node)) wrong.add("fallback of {}", node);
  }
  for (const auto& [node, request] : expected.fallbacks) {
    const auto it = got.fallbacks.find(node);
    wrong.holds(it == got.fallbacks.end() ? "fallbacks" : it->second, request);
  }
  return wrong.str();
}

}  // namespace berth::conformance
