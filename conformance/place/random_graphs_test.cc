// Random graphs, placed by TensorFlow's rules twice: by place() and by a
// plain reference: same devices, or an error from both. And what every
// placed graph must keep.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "berth/errors.h"
#include "conformance/place/reference_placer.h"
#include "graph/graph_text.h"
#include "place/place_text.h"

namespace berth::conformance {

namespace {

using Ops = std::vector<ReferenceOp>;

const std::map<std::string, int> kBoth = {{"CPU", 0}, {"GPU", 0}};

const Ops& ops() {
  static const Ops list = {
      {"Make", {}, "value", kBoth},
      {"MakeCpu", {}, "value", {{"CPU", 0}}},
      {"Pair", {}, "two", kBoth},
      {"One", {"value"}, "value", kBoth},
      {"Two", {"value", "value"}, "value", kBoth},
      {"OneCpu", {"value"}, "value", {{"CPU", 0}}},
      {"OneGpu", {"value"}, "value", {{"GPU", 0}}},
      {"Wish", {"value"}, "value", {{"CPU", 2}, {"GPU", 1}}},
      {"Not", {"value"}, "value", {{"CPU", 1}, {"GPU", 2}}},
      {"Even", {"value"}, "value", {{"CPU", 3}, {"GPU", 3}}},
      {"Three", {"value"}, "value", {{"CPU", 1}, {"GPU", 2}, {"NPU", 3}}},
      {"Meta", {"value"}, "value", kBoth, true},
      {"MetaCpu", {"value"}, "value", {{"CPU", 0}}, true},
      {"Identity", {"value"}, "value", {}},
      {"Var", {}, "resource", kBoth},
      {"Read", {"resource"}, "value", kBoth},
      {"ReadCpu", {"resource"}, "value", {{"CPU", 0}}},
      {"Swap", {"resource", "resource"}, "value", kBoth},
      {"RefVar", {}, "ref", kBoth},
      {"RefPass", {"ref"}, "ref", kBoth},
      {"RefAssign", {"ref", "value"}, "ref", kBoth},
  };
  return list;
}

struct RandomGraph {
  std::vector<ReferenceNode> nodes;
  std::string text;
};

class Generator {
 public:
  Generator(uint32_t seed, const std::vector<std::string>& types)
      : random_(seed), ops_(ops()) {
    // The catalogue's Identity runs on all of them.
    for (ReferenceOp& op : ops_) {
      if (op.name != "Identity") continue;
      for (const std::string& type : types) op.kernels[type] = 0;
    }
  }

  RandomGraph make() {
    RandomGraph g;
    g.text = "berth-graph 1\n" + declarations();
    const int size = pick(2, 14);
    while (static_cast<int>(g.nodes.size()) < size) add_node(&g);
    return g;
  }
  int pick(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random_);
  }

 private:
  std::string declarations() const {
    std::string text;
    for (const ReferenceOp& op : ops_) {
      if (op.name != "Identity") {
        std::vector<std::string> in;
        for (const std::string& kind : op.inputs) {
          in.push_back(fmt::format("i{}: {}{}", in.size(),
                                   kind == "resource" ? "resource" : "any",
                                   kind == "resource" ? " write"
                                   : kind == "ref"    ? " ref"
                                                      : ""));
        }
        text += fmt::format(
            "op {} ({}) -> (y{}{}){}\n", op.name, fmt::join(in, ", "),
            op.output == "ref" ? " ref" : "", op.output == "two" ? ", z" : "",
            op.metadata ? " metadata" : "");
      }
      for (const auto& [type, priority] : op.kernels) {
        text +=
            fmt::format("kernel {} on {}{}\n", op.name, type,
                        priority ? fmt::format(" priority {}", priority) : "");
      }
    }
    return text;
  }

  // A node whose output suits an input of this kind, -1: none.
  int producer(const RandomGraph& g, const std::string& kind) {
    std::vector<int> fit;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      const std::string& out = g.nodes[i].op->output;
      const bool suits = kind == "value" ? out != "resource" : out == kind;
      if (suits) fit.push_back(static_cast<int>(i));
    }
    return fit.empty() ? -1 : fit[pick(0, static_cast<int>(fit.size()) - 1)];
  }

  void add_node(RandomGraph* g) {
    ReferenceNode n;
    n.op = &ops_[pick(0, static_cast<int>(ops_.size()) - 1)];
    std::vector<std::string> in;
    for (const std::string& kind : n.op->inputs) {
      const int from = producer(*g, kind);
      if (from < 0) return;
      n.inputs.push_back(from);
      in.push_back(fmt::format("n{}:0", from));
    }
    static const std::vector<std::string> requests = {
        "/GPU:0", "/GPU:1", "/CPU:0",      "/CPU:1",        "/device:GPU",
        "/GPU:7", "/NPU:0", "/device:CPU", "/job:localhost"};
    if (pick(0, 9) < 3) {
      n.request = requests[pick(0, static_cast<int>(requests.size()) - 1)];
      if (n.request == "/NPU:0") n.request = "/device:NPU:0";
    }
    if (pick(0, 9) < 2) n.groups.push_back(pick(0, 1) ? "g" : "h");
    if (pick(0, 9) < 1 && !g->nodes.empty()) {
      n.groups.push_back(
          fmt::format("n{}", pick(0, static_cast<int>(g->nodes.size()) - 1)));
    }
    const std::string spec = n.op->output == "resource" ? "resource(float32)[4]"
                             : n.op->output == "two" ? "float32[4], float32[4]"
                                                     : "float32[4]";
    g->text += fmt::format("node n{} = {}({}) -> {}", g->nodes.size(),
                           n.op->name, fmt::join(in, ", "), spec);
    if (!n.request.empty()) g->text += fmt::format(" on \"{}\"", n.request);
    if (!n.groups.empty()) {
      g->text += fmt::format(" with {}", fmt::join(n.groups, ", "));
    }
    g->text += '\n';
    g->nodes.push_back(std::move(n));
  }

  std::mt19937 random_;
  Ops ops_;
};

// "n0 GPU:0 ...", or "error".
std::string by_reference(const RandomGraph& g,
                         const std::vector<std::string>& devices, bool soft) {
  try {
    return fmt::format(
        "{}", fmt::join(place_by_reference(g.nodes, devices, soft), "\n"));
  } catch (const CannotPlace&) {
    return "error";
  }
}

std::string by_engine(const RandomGraph& g,
                      const std::vector<std::string>& devices, bool soft,
                      PlacePolicy policy) {
  GraphText text = parse_text(g.text);
  PlaceOptions options = place_options(text, devices);
  options.policy = policy;
  options.soft =
      soft ? config::SoftPlacement::kSilent : config::SoftPlacement::kError;
  try {
    place(text.graph, options);
  } catch (const errors::Error& e) {
    const bool named = dynamic_cast<const PlaceFailure*>(&e) != nullptr;
    return named ? "error" : std::string("another error: ") + e.what();
  }
  std::vector<std::string> result;
  for (const Node& n : text.graph.nodes) result.push_back(n.assigned.text());
  return fmt::format("{}", fmt::join(result, "\n"));
}

TEST(RandomGraphs, ArePlacedAsTheReferenceDoes) {
  const std::vector<std::string> lists = {"CPUx2,GPUx2", "CPUx1,GPUx11",
                                          "CPUx2"};
  int errors = 0, placed = 0;
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    const std::string& list = lists[seed % lists.size()];
    const std::vector<std::string> types =
        list == "CPUx2" ? std::vector<std::string>{"CPU"}
                        : std::vector<std::string>{"CPU", "GPU"};
    Generator generator(seed, types);
    const RandomGraph g = generator.make();
    const std::vector<std::string> devices = devices_of_list(list);
    const bool soft = generator.pick(0, 1) == 1;
    const std::string wanted = by_reference(g, devices, soft);
    ++(wanted == "error" ? errors : placed);
    ASSERT_EQ(by_engine(g, devices, soft, PlacePolicy::kTensorFlow), wanted)
        << "seed " << seed << " on " << list << (soft ? " softly" : "") << "\n"
        << g.text.substr(g.text.find("node "));
  }
  EXPECT_GT(errors, 500);
  EXPECT_GT(placed, 2000);
}

// What must hold of every placed graph, whatever the rules chose.
void expect_constraints_hold(const RandomGraph& g, const Graph& placed,
                             const Placement& placement, bool soft) {
  std::set<std::string> told;
  for (const PlaceNote& n : placement.notes) {
    told.insert(placed[n.node].name);
  }
  for (const PlaceFallback& f : placement.fallbacks) {
    told.insert(placed[f.node].name);
  }
  std::map<std::string, DeviceId> group_device;
  for (int32_t i = 0; i < placed.size(); ++i) {
    const ReferenceNode& n = g.nodes[i];
    const DeviceName at = placed[i].assigned.name();
    EXPECT_TRUE(n.op->name == "Identity" || n.op->kernels.contains(*at.type))
        << placed[i].name << " has no kernel";
    EXPECT_TRUE(DeviceName::parse(n.request).matches(at) ||
                told.contains(placed[i].name))
        << placed[i].name << " is elsewhere and nothing is said";
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      if (n.op->inputs[k] == "value") continue;
      EXPECT_EQ(placed[i].assigned, placed[n.inputs[k]].assigned)
          << "an edge of " << placed[i].name;
    }
    std::vector<std::string> groups = n.groups;
    groups.push_back(placed[i].name);
    for (const std::string& name : groups) {
      const auto [it, fresh] = group_device.emplace(name, placed[i].assigned);
      EXPECT_TRUE(fresh || soft || it->second == placed[i].assigned)
          << "group " << name;
    }
  }
}

TEST(RandomGraphs, KeepTheirConstraintsUnderBothPolicies) {
  int placed = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    Generator generator(seed, {"CPU", "GPU"});
    const RandomGraph g = generator.make();
    const bool soft = generator.pick(0, 1) == 1;
    GraphText text = parse_text(g.text);
    PlaceOptions options = place_options(text, devices_of_list("CPUx2,GPUx2"));
    options.soft =
        soft ? config::SoftPlacement::kWarn : config::SoftPlacement::kError;
    options.policy =
        seed % 3 == 0 ? PlacePolicy::kTensorFlow : PlacePolicy::kBerth;
    SCOPED_TRACE(fmt::format("seed {}{}\n{}", seed, soft ? " softly" : "",
                             g.text.substr(g.text.find("node "))));
    try {
      const Placement placement = place(text.graph, options);
      expect_constraints_hold(g, text.graph, placement, soft);
      ++placed;
    } catch (const errors::Error& e) {
      const auto* failure = dynamic_cast<const PlaceFailure*>(&e);
      ASSERT_NE(failure, nullptr) << e.what();
      EXPECT_FALSE(failure->conflict().constraints.empty()) << e.what();
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(placed, 2000);
}

}  // namespace
}  // namespace berth::conformance
