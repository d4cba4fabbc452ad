// Random graphs, placed by TensorFlow's rules twice: by place() and by a
// plain reference: same devices, or an error from both. And what every
// placed graph must keep.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
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
      {"Identity", {"resource"}, "resource", {}},
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
  std::vector<std::shared_ptr<ReferenceFunction>> functions;
  std::vector<std::shared_ptr<ReferenceOp>> calls;
  std::string text;
};

// What random graphs have beside ops, requests and groups.
struct More {
  bool assigned = false, functions = false;
};

class Generator {
 public:
  Generator(uint32_t seed, const std::vector<std::string>& types,
            const std::vector<std::string>& devices = {}, More more = {})
      : random_(seed), ops_(ops()), devices_(devices), more_(more) {
    // The catalogue's Identity, calls and arguments run on all of them.
    for (const std::string& type : types) everywhere_[type] = 0;
    for (ReferenceOp& op : ops_) {
      if (op.name == "Identity") op.kernels = everywhere_;
    }
    argument_ = {"_Arg", {}, "resource", everywhere_};
  }

  RandomGraph make() {
    RandomGraph g;
    g.text = "berth-graph 1\n" + declarations();
    if (more_.functions) {
      for (int f = pick(1, 3); f > 0; --f) add_function(&g);
    }
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
      if (op.name == "Identity" && op.output == "resource") continue;
      for (const auto& [type, priority] : op.kernels) {
        text +=
            fmt::format("kernel {} on {}{}\n", op.name, type,
                        priority ? fmt::format(" priority {}", priority) : "");
      }
    }
    return text;
  }

  // A value that suits an input of this kind.
  std::optional<ReferenceInput> producer(
      const std::vector<ReferenceNode>& nodes, const std::string& kind) {
    std::vector<ReferenceInput> fit;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::string& out = nodes[i].op->output;
      const int node = static_cast<int>(i);
      if (out == "call") {
        const size_t n = nodes[i].callee->results.size();
        for (size_t k = 0; kind == "resource" && k < n; ++k) {
          fit.push_back({node, static_cast<int>(k)});
        }
      } else if (kind == "value" ? out != "resource" : out == kind) {
        fit.push_back({node, 0});
      }
    }
    if (fit.empty()) return {};
    return fit[static_cast<size_t>(pick(0, static_cast<int>(fit.size()) - 1))];
  }

  std::string random_request() {
    static const std::vector<std::string> requests = {
        "/GPU:0", "/GPU:1", "/CPU:0",      "/CPU:1",        "/device:GPU",
        "/GPU:7", "/NPU:0", "/device:CPU", "/job:localhost"};
    std::string r = requests[static_cast<size_t>(
        pick(0, static_cast<int>(requests.size()) - 1))];
    return r == "/NPU:0" ? "/device:NPU:0" : r;
  }

  static std::string input_text(const char* prefix, ReferenceInput v) {
    return fmt::format("{}{}:{}", prefix, v.node, v.output);
  }

  // A call of a random function; false: it has no inputs for one.
  bool make_call(RandomGraph* g, const std::vector<ReferenceNode>& nodes,
                 size_t functions, ReferenceNode* n) {
    if (functions == 0) return false;
    const auto& f = g->functions[static_cast<size_t>(
        pick(0, static_cast<int>(functions) - 1))];
    n->callee = f.get();
    for (int a = 0; a < f->num_args; ++a) {
      // Now and then the same handle twice.
      const auto from = a > 0 && pick(0, 3) == 0 ? n->inputs.back()
                                                 : producer(nodes, "resource");
      if (!from) return false;
      n->inputs.push_back(*from);
    }
    g->calls.push_back(std::make_shared<ReferenceOp>(ReferenceOp{
        "PartitionedCall",
        std::vector<std::string>(static_cast<size_t>(f->num_args), "resource"),
        "call", everywhere_}));
    n->op = g->calls.back().get();
    return true;
  }

  static std::string handles(size_t n) {
    return fmt::format(
        "{}",
        fmt::join(std::vector<std::string>(n, "resource(float32)[4]"), ", "));
  }

  // Text of a node, but for its clauses.
  static std::string node_text(const char* prefix, size_t number,
                               const ReferenceNode& n) {
    std::vector<std::string> in;
    for (const ReferenceInput& v : n.inputs) {
      in.push_back(input_text(prefix, v));
    }
    const std::string& out = n.op->output;
    const std::string spec = out == "call" ? handles(n.callee->results.size())
                             : out == "resource" ? handles(1)
                             : out == "two"      ? "float32[4], float32[4]"
                                                 : "float32[4]";
    return fmt::format(
        "node {}{} = {}({}) {}-> {}", prefix, number, n.op->name,
        fmt::join(in, ", "),
        n.callee ? fmt::format("{{f = @{}}} ", n.callee->name) : "", spec);
  }

  // Reads, joins, makes and passes on handles, and calls functions before it.
  void add_function(RandomGraph* g) {
    auto f = std::make_shared<ReferenceFunction>();
    const size_t before = g->functions.size();
    f->name = fmt::format("f{}", before);
    f->num_args = pick(0, 3);
    std::string body;
    for (int a = 0; a < f->num_args; ++a) {
      f->nodes.push_back({.op = &argument_});
      body += fmt::format(
          "node b{} = _Arg() {{dtype = resource, index = {}, shape = "
          "shape[4]}} -> resource(float32)[4]\n",
          a, a);
    }
    for (int k = pick(1, 4); k > 0; --k) {
      static const std::vector<std::string> inside = {"Var", "Read", "ReadCpu",
                                                      "Swap", "Identity"};
      ReferenceNode n;
      if (pick(0, 4) == 0) {
        if (!make_call(g, f->nodes, before, &n)) continue;
      } else {
        const std::string& op = inside[static_cast<size_t>(pick(0, 4))];
        const bool handle = op == "Identity" && pick(0, 1) == 1;
        n.op = &*std::find_if(ops_.begin(), ops_.end(), [&](const auto& o) {
          return o.name == op && (!handle || o.output == "resource");
        });
        bool complete = true;
        for (const std::string& kind : n.op->inputs) {
          const auto from = producer(f->nodes, kind);
          complete = complete && from;
          if (from) n.inputs.push_back(*from);
        }
        if (!complete) continue;
      }
      if (pick(0, 3) == 0) n.request = random_request();
      body += node_text("b", f->nodes.size(), n);
      if (!n.request.empty()) body += fmt::format(" on \"{}\"", n.request);
      body += '\n';
      f->nodes.push_back(std::move(n));
    }
    std::vector<std::string> returned;
    for (int r = pick(1, 3); r > 0; --r) {
      const auto from = producer(f->nodes, "resource");
      if (!from) return;
      f->results.push_back(*from);
      returned.push_back(input_text("b", *from));
    }
    g->text += fmt::format("function {} ({}) -> ({}) {{\n{}return {}\n}}\n",
                           f->name, handles(static_cast<size_t>(f->num_args)),
                           handles(f->results.size()), body,
                           fmt::join(returned, ", "));
    g->functions.push_back(std::move(f));
  }

  void add_node(RandomGraph* g) {
    ReferenceNode n;
    if (more_.functions && pick(0, 3) == 0) {
      if (!make_call(g, g->nodes, g->functions.size(), &n)) return;
    } else {
      n.op = &ops_[static_cast<size_t>(
          pick(0, static_cast<int>(ops_.size()) - 1))];
      for (const std::string& kind : n.op->inputs) {
        const auto from = producer(g->nodes, kind);
        if (!from) return;
        n.inputs.push_back(*from);
      }
    }
    if (pick(0, 9) < 3) n.request = random_request();
    if (pick(0, 9) < 2) n.groups.push_back(pick(0, 1) ? "g" : "h");
    if (pick(0, 9) < 1 && !g->nodes.empty()) {
      n.groups.push_back(
          fmt::format("n{}", pick(0, static_cast<int>(g->nodes.size()) - 1)));
    }
    if (more_.assigned && pick(0, 5) == 0) {
      n.assigned = devices_[static_cast<size_t>(
          pick(0, static_cast<int>(devices_.size()) - 1))];
    }
    g->text += node_text("n", g->nodes.size(), n);
    if (!n.request.empty()) g->text += fmt::format(" on \"{}\"", n.request);
    if (!n.assigned.empty()) g->text += fmt::format(" at \"{}\"", n.assigned);
    if (!n.groups.empty()) {
      g->text += fmt::format(" with {}", fmt::join(n.groups, ", "));
    }
    g->text += '\n';
    g->nodes.push_back(std::move(n));
  }

  std::mt19937 random_;
  Ops ops_;
  const std::vector<std::string> devices_;
  const More more_;
  std::map<std::string, int> everywhere_;
  ReferenceOp argument_;
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
    // An assigned device without a kernel is an error of the caller.
    const bool named =
        dynamic_cast<const PlaceFailure*>(&e) != nullptr ||
        std::string(e.what()).find("its assigned device") != std::string::npos;
    return named ? "error" : std::string("another error: ") + e.what();
  }
  std::vector<std::string> result;
  for (const Node& n : text.graph.nodes) result.push_back(n.assigned.text());
  return fmt::format("{}", fmt::join(result, "\n"));
}

// Places graphs with `more` twice, on each of the lists in turn.
void expect_reference(const std::vector<std::string>& lists, More more,
                      uint32_t seeds, int* errors, int* placed) {
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    const std::string& list = lists[seed % lists.size()];
    const std::vector<std::string> types =
        list == "CPUx2" ? std::vector<std::string>{"CPU"}
                        : std::vector<std::string>{"CPU", "GPU"};
    const std::vector<std::string> devices = devices_of_list(list);
    Generator generator(seed, types, devices, more);
    const RandomGraph g = generator.make();
    const bool soft = generator.pick(0, 1) == 1;
    const std::string wanted = by_reference(g, devices, soft);
    ++(wanted == "error" ? *errors : *placed);
    ASSERT_EQ(by_engine(g, devices, soft, PlacePolicy::kTensorFlow), wanted)
        << "seed " << seed << " on " << list << (soft ? " softly" : "") << "\n"
        << g.text.substr(g.text.find("kernel Three"));
  }
}

TEST(RandomGraphs, ArePlacedAsTheReferenceDoes) {
  int errors = 0, placed = 0;
  expect_reference({"CPUx2,GPUx2", "CPUx1,GPUx11", "CPUx2"}, {}, 6000, &errors,
                   &placed);
  EXPECT_GT(errors, 500);
  EXPECT_GT(placed, 2000);
}

TEST(RandomGraphs, AssignedNodesStayWhereTheReferenceHasThem) {
  int errors = 0, placed = 0;
  expect_reference({"CPUx2,GPUx2", "CPUx2"}, {.assigned = true}, 2500, &errors,
                   &placed);
  EXPECT_GT(errors, 300);
  EXPECT_GT(placed, 600);
}

TEST(RandomGraphs, HandlesOnCompositeDevicesAreReadOnAnyOne) {
  int errors = 0, placed = 0;
  expect_reference({"CPUx2,GPUx2,COMPOSITEx1"}, {.assigned = true}, 2500,
                   &errors, &placed);
  EXPECT_GT(errors, 300);
  EXPECT_GT(placed, 600);
}

// Handles that functions swap, return twice, make and hand to the next call.
TEST(RandomGraphs, FunctionsThatPassHandlesOnBindAsTheReferenceSays) {
  int errors = 0, placed = 0;
  expect_reference({"CPUx2,GPUx2", "CPUx2"}, {.functions = true}, 2500, &errors,
                   &placed);
  EXPECT_GT(errors, 300);
  EXPECT_GT(placed, 600);
}

TEST(RandomGraphs, AllOfItTogether) {
  int errors = 0, placed = 0;
  expect_reference({"CPUx2,GPUx2,COMPOSITEx1"},
                   {.assigned = true, .functions = true}, 2500, &errors,
                   &placed);
  EXPECT_GT(errors, 300);
  EXPECT_GT(placed, 600);
}

// A function that calls itself has no placement: the text refuses it, and so
// does the reference.
TEST(RandomGraphs, RecursionIsAnErrorOfBoth) {
  ReferenceFunction f{.name = "f", .num_args = 1};
  const std::map<std::string, int> both = {{"CPU", 0}, {"GPU", 0}};
  const ReferenceOp argument{"_Arg", {}, "resource", both};
  const ReferenceOp call{"PartitionedCall", {"resource"}, "call", both};
  const ReferenceOp var{"Var", {}, "resource", both};
  f.results = {{1, 0}};
  f.nodes = {{.op = &argument},
             {.op = &call, .inputs = {{0, 0}}, .callee = &f}};
  const std::vector<ReferenceNode> nodes = {
      {.op = &var}, {.op = &call, .inputs = {{0, 0}}, .callee = &f}};
  EXPECT_THROW(place_by_reference(nodes, devices_of_list("CPUx1,GPUx1"), true),
               CannotPlace);
  try {
    parse_text(
        "berth-graph 1\n"
        "function f (resource(float32)[4]) -> (resource(float32)[4]) {\n"
        "node x = _Arg() {dtype = resource, index = 0, shape = shape[4]} -> "
        "resource(float32)[4]\n"
        "node c = PartitionedCall(x:0) {f = @f} -> resource(float32)[4]\n"
        "return c:0\n}\n");
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("calls itself"), std::string::npos)
        << e.what();
  }
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
      EXPECT_EQ(placed[i].assigned, placed[n.inputs[k].node].assigned)
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
