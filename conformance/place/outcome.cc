#include "conformance/place/outcome.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "berth/errors.h"
#include "graph/graph_text.h"
#include "place/place_text.h"
#include "place/schedule.h"

namespace berth::conformance {

namespace {

// What a node reads, seen through transfers: "a:0".
std::string origin(const Graph& g, ValueRef v) {
  while (g[v.node].op->name() == "_Transfer") v = g[v.node].inputs[0];
  return fmt::format("{}:{}", g[v.node].name, v.output);
}

// Copies of constants are told by their names: "c/to_GPU:1".
std::string copied_from(const std::string& name) {
  const size_t at = name.rfind("/to_");
  return at == std::string::npos ? "" : name.substr(0, at);
}

bool made_by_partition(const Node& n) {
  return n.op->name() == "_Transfer" ||
         (n.op->name() == "Const" && !copied_from(n.name).empty());
}

// A cut keeps what every node reads and waits for, and leaves data edges of
// one device alone.
void expect_same_meaning(const Graph& before, const Graph& after) {
  std::map<std::string, int32_t> position;
  for (int32_t i = 0; i < after.size(); ++i) position[after[i].name] = i;
  for (const Node& old : before.nodes) {
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
    const std::string to = short_name(n.assigned);
    if (n.op->name() == "_Transfer") {
      edges.insert(
          fmt::format("transfer {} -> {}", origin(g, n.inputs[0]), to));
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
    if (!made_by_partition(n)) devices[n.name] = short_name(n.assigned);
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
      o.fallbacks[graph[f.node].name] = f.requested;
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

void check(const PlaceCase& c, const Expected& expected, const Outcome& got) {
  if (!expected.error.empty()) {
    EXPECT_NE(got.error, "") << "no error\n" << c.text;
    if (expected.error != "*") {
      EXPECT_EQ(got.error, expected.error) << got.message;
    }
    for (const std::string& word : expected.words) {
      EXPECT_NE(got.message.find(word), std::string::npos)
          << "no " << word << " in: " << got.message;
    }
    return;
  }
  ASSERT_EQ(got.error, "") << got.message;
  for (const auto& [node, device] : expected.devices) {
    ASSERT_TRUE(got.devices.contains(node)) << "no node " << node;
    if (device != "*") {
      EXPECT_EQ(got.devices.at(node), device) << node;
    }
  }
  if (c.kind == CaseKind::kPartition) {
    EXPECT_EQ(got.edges, expected.edges);
  } else {
    for (const auto& [node, device] : got.devices) {
      EXPECT_TRUE(expected.devices.contains(node))
          << "the case does not say where " << node << " is";
    }
  }
  EXPECT_EQ(got.notes, expected.notes);
  EXPECT_EQ(got.fallbacks.size(), expected.fallbacks.size())
      << testing::PrintToString(got.fallbacks);
  for (const auto& [node, request] : expected.fallbacks) {
    ASSERT_TRUE(got.fallbacks.contains(node)) << "no fallback of " << node;
    EXPECT_NE(got.fallbacks.at(node).find(request), std::string::npos)
        << got.fallbacks.at(node);
  }
}

}  // namespace berth::conformance
