// All-reduce between GPUs: the sums, and the bytes sent for them.

#include "collective/device_allreduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "collective/gpu_testing.h"
#include "collective/lower.h"
#include "exec/plan.h"
#include "function/compile.h"
#include "passes/pipeline.h"

namespace berth {
namespace {

using namespace collective_tests;

// A step in which replicas, one per device, reduce some values.
struct Step {
  std::vector<Shape> shapes;         // of the values
  std::vector<std::string> devices;  // by replica
  AllReduceOptions options;
  DType dtype = float32;
};

class Between : public FourGpus {
 protected:
  static void expect_sums(const Step& s, int seeds = 2);
};

// Piece p of value i is argument i * pieces + p, doubled; each taker reads one
// result. Outputs: by value, then by wish.
Graph graph_of(const Step& s) {
  const std::vector<int64_t>& owners = s.options.owners;
  std::vector<TensorSpec> args;
  for (const Shape& shape : s.shapes) {
    for (size_t p = 0; p < owners.size(); ++p) {
      args.push_back({shape, s.dtype, "x"});
    }
  }
  return trace(args, s.devices, [&](Tensors& x) {
    Tensors out;
    for (size_t i = 0; i < s.shapes.size(); ++i) {
      Tensors pieces;
      for (size_t p = 0; p < owners.size(); ++p) {
        const auto on = device(s.devices[static_cast<size_t>(owners[p])]);
        pieces.push_back(x[i * owners.size() + p] * 2);
      }
      const Tensors sums = all_reduce(pieces, s.options);
      for (size_t r = 0; r < sums.size(); ++r) {
        const auto replica = static_cast<size_t>(s.options.replicas[r]);
        const auto on = device(s.devices[replica]);
        out.push_back(sums[r] - 1);
      }
    }
    return out;
  });
}

// Small integers, so that sums are exact in any order.
std::vector<float> whole_numbers(int64_t n, size_t seed) {
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<float>(static_cast<int>((i * 7 + seed * 5) % 23) - 11);
  }
  return v;
}

Tensors arguments(const Step& s) {
  Tensors args;
  const auto on = device("/CPU:0");
  for (size_t i = 0; i < s.shapes.size(); ++i) {
    for (size_t p = 0; p < s.options.owners.size(); ++p) {
      const auto v = whole_numbers(s.shapes[i].num_elements(), args.size());
      args.push_back(
          cast(constant(std::span<const float>(v), s.shapes[i]), s.dtype));
    }
  }
  return args;
}

// The expected sums, computed on the host per value.
std::vector<std::vector<float>> expected(const Step& s) {
  std::vector<std::vector<float>> all;
  const std::vector<int64_t>& owners = s.options.owners;
  const std::set<int64_t> distinct(owners.begin(), owners.end());
  const auto n =
      static_cast<float>(s.options.reduction == "mean" ? distinct.size() : 1);
  for (size_t i = 0; i < s.shapes.size(); ++i) {
    std::vector<float> sum(static_cast<size_t>(s.shapes[i].num_elements()), 0);
    for (size_t p = 0; p < owners.size(); ++p) {
      const auto v =
          whole_numbers(s.shapes[i].num_elements(), i * owners.size() + p);
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += 2 * v[k];
    }
    for (float& x : sum) x = x / n - 1;
    all.push_back(std::move(sum));
  }
  return all;
}

Tensors run(Plan& plan, const Tensors& args, size_t outputs) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : args) in.push_back(&t);
  Tensors out(outputs);
  plan.run(in, out);
  return out;
}

void Between::expect_sums(const Step& s, int seeds) {
  const auto plan = compile(graph_of(s));
  const Tensors args = arguments(s);
  const auto want = expected(s);
  const size_t wishes = s.options.replicas.size();
  for (int seed = 0; seed < seeds; ++seed) {
    set_seed(static_cast<uint64_t>(seed));
    const Tensors out = run(*plan, args, s.shapes.size() * wishes);
    for (size_t o = 0; o < out.size(); ++o) {
      EXPECT_EQ(out[o].shape(), s.shapes[o / wishes]);
      const auto replica = static_cast<size_t>(s.options.replicas[o % wishes]);
      EXPECT_EQ(out[o].device(), s.devices[replica]);
      const auto got = out[o].to_vector<float>();
      if (s.options.reduction == "mean") {
        for (size_t k = 0; k < got.size(); ++k) {
          EXPECT_NEAR(got[k], want[o / wishes][k], 1e-5f);
        }
      } else {
        EXPECT_EQ(got, want[o / wishes]) << "value " << o / wishes;
      }
    }
  }
}

struct Sent {
  std::map<std::string, int64_t> from;  // bytes by device
  int64_t total = 0;
  int messages = 0;
};

Sent sent_by(const Plan& plan) {
  Sent sent;
  const Graph& g = plan.graph();
  for (const Node& n : g.nodes) {
    if (n.op->name() != "_Transfer") continue;
    const std::string& from = g[n.inputs[0].node].assigned.text();
    if (from.find("GPU") == from.npos) continue;  // arguments
    const auto bytes = n.outputs[0].shape.num_elements() *
                       static_cast<int64_t>(size_of(n.outputs[0].dtype));
    sent.from[from] += bytes;
    sent.total += bytes;
    ++sent.messages;
  }
  return sent;
}

std::vector<int64_t> count_to(int n) {
  std::vector<int64_t> v;
  for (int i = 0; i < n; ++i) v.push_back(i);
  return v;
}

// One piece and one wish per device.
Step everybody(int n, std::vector<Shape> shapes, const std::string& algorithm) {
  return {
      std::move(shapes),
      gpus(n),
      {.owners = count_to(n), .replicas = count_to(n), .algorithm = algorithm}};
}

TEST_F(Between, EveryAlgorithmGivesEverybodyTheSum) {
  for (const char* algorithm : kAlgorithms) {
    for (int n = 2; n <= kGpus; ++n) {
      SCOPED_TRACE(fmt::format("{} on {}", algorithm, n));
      // Uneven, fewer elements than devices, one, none, several in a bucket.
      expect_sums(everybody(n, {{5, 7}}, algorithm), 10);
      expect_sums(everybody(n, {{2}}, algorithm));
      expect_sums(everybody(n, {Shape{}}, algorithm));
      expect_sums(everybody(n, {{0, 3}}, algorithm));
      expect_sums(
          everybody(n, {{3, 4}, {1}, {17}, Shape{}, {2, 2, 2}}, algorithm), 10);
    }
  }
}

TEST_F(Between, MeansDivideByTheNumberOfOwners) {
  for (const char* algorithm : kAlgorithms) {
    Step s = everybody(3, {{4, 5}, {3}}, algorithm);
    s.options.reduction = "mean";
    expect_sums(s);
    // Two pieces of one owner count once.
    s.options.owners = {0, 0, 1, 2};
    expect_sums(s);
  }
}

TEST_F(Between, OtherDtypesAreAddedAsTheyAre) {
  for (const char* algorithm : kAlgorithms) {
    for (const DType dtype : {bfloat16, float64, int32, int64}) {
      Step s = everybody(3, {{7}, {2, 3}}, algorithm);
      s.dtype = dtype;
      SCOPED_TRACE(fmt::format("{} {}", algorithm, name_of(dtype)));
      expect_sums(s);
    }
  }
}

TEST_F(Between, GiversNeedNotTakeNorTakersGive) {
  for (const char* algorithm : kAlgorithms) {
    SCOPED_TRACE(algorithm);
    Step s = everybody(4, {{9, 3}, {5}}, algorithm);
    s.options.replicas = {1};
    expect_sums(s);
    s.options.replicas = {0, 3};
    expect_sums(s);
    s.options.owners = {1, 2};
    expect_sums(s);
    s.options.owners = {2};
    expect_sums(s);
    s.options.owners = {3, 3, 1};
    s.options.replicas = {2, 0};
    expect_sums(s);
  }
}

TEST_F(Between, TheHostTakesPartAsAMemoryOfItsOwn) {
  for (const char* algorithm : kAlgorithms) {
    SCOPED_TRACE(algorithm);
    Step s = everybody(3, {{9, 3}, {5}}, algorithm);
    s.devices[1] = full_name("CPU", 0);
    expect_sums(s);
    s.options.owners = {0, 2};
    s.options.replicas = {1};
    expect_sums(s);
  }
}

TEST_F(Between, SeveralReplicasOfOneDeviceSendOnce) {
  for (const char* algorithm : kAlgorithms) {
    SCOPED_TRACE(algorithm);
    Step s = everybody(4, {{50, 10}}, algorithm);
    s.devices[1] = s.devices[0];
    s.devices[3] = s.devices[2];
    expect_sums(s);
    EXPECT_EQ(sent_by(*compile(graph_of(s))).total, 2 * 2000);
  }
}

TEST_F(Between, BucketsOfAnyBytesGiveTheSame) {
  for (const char* algorithm : kAlgorithms) {
    for (const int64_t bytes : {1, 40, 100, 1000000}) {
      Step s = everybody(3, {{6}, {11}, {3, 3}, {2}, {30}}, algorithm);
      s.options.pack_bytes = bytes;
      expect_sums(s);
    }
  }
}

TEST_F(Between, RandomStepsGiveTheSum) {
  std::mt19937 random(17);
  const auto pick = [&](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 60; ++round) {
    Step s;
    for (int i = pick(4); i >= 0; --i) {
      Shape shape;
      for (int d = pick(3); d > 0; --d) shape.push_back(pick(6));
      s.shapes.push_back(shape);
    }
    for (int r = 0; r < 5; ++r) {
      const int g = pick(kGpus + 1);
      s.devices.push_back(g < kGpus ? full_name("GPU", g)
                                    : full_name("CPU", 0));
    }
    for (int p = 1 + pick(6); p > 0; --p) s.options.owners.push_back(pick(5));
    std::set<int64_t> replicas;
    for (int r = 1 + pick(5); r > 0; --r) replicas.insert(pick(5));
    s.options.replicas.assign(replicas.begin(), replicas.end());
    s.options.algorithm = kAlgorithms[pick(5)];
    s.options.pack_bytes = pick(2) ? 0 : 1 + pick(64);
    SCOPED_TRACE(round);
    expect_sums(s);
    if (HasFailure()) break;
  }
}

// Closed forms: bytes per device for B bytes on N devices.
TEST_F(Between, DirectAndRingSendTwiceNMinusOneNthsPerDevice) {
  for (const char* algorithm : {"direct", "ring"}) {
    for (int n = 2; n <= kGpus; ++n) {
      const int64_t elements = 12 * 512;
      const Sent sent = sent_by(*compile(graph_of(
          everybody(n, {{elements / 2}, {2, elements / 4}}, algorithm))));
      ASSERT_EQ(sent.from.size(), static_cast<size_t>(n));
      for (const auto& [device, bytes] : sent.from) {
        EXPECT_EQ(bytes, 2 * (n - 1) * elements * 4 / n)
            << algorithm << " " << device;
      }
    }
  }
}

TEST_F(Between, OneDeviceReceivesAllAndSendsTheSum) {
  for (int n = 2; n <= kGpus; ++n) {
    const int64_t bytes = 6000 * 4;
    const Sent sent =
        sent_by(*compile(graph_of(everybody(n, {{6000}}, "one_device"))));
    EXPECT_EQ(sent.total, 2 * (n - 1) * bytes);
    EXPECT_EQ(sent.from.at(full_name("GPU", 0)), (n - 1) * bytes);
    EXPECT_EQ(sent.from.at(full_name("GPU", 1)), bytes);
  }
}

TEST_F(Between, PairsSendAsMuchInAllAndNoDeviceMoreThanOncePerLevel) {
  for (int n = 2; n <= kGpus; ++n) {
    const int64_t bytes = 6000 * 4;
    const Sent sent =
        sent_by(*compile(graph_of(everybody(n, {{6000}}, "hierarchical"))));
    EXPECT_EQ(sent.total, 2 * (n - 1) * bytes);
    for (const auto& [device, from] : sent.from) {
      EXPECT_LE(from, 2 * bytes) << device;  // log2(4)
    }
  }
}

// A ring only has links between neighbours.
TEST_F(Between, ARingSendsToTheNextDeviceAlone) {
  const auto plan = compile(graph_of(everybody(4, {{4000}}, "ring")));
  for (const Node& n : plan->graph().nodes) {
    if (n.op->name() != "_Transfer") continue;
    const std::string& from = plan->graph()[n.inputs[0].node].assigned.text();
    if (from.find("GPU") == from.npos) continue;
    EXPECT_EQ((from.back() - '0' + 1) % 4, n.assigned.text().back() - '0');
  }
}

TEST_F(Between, SmallBucketsSendFewMessages) {
  // Two devices: one message each way. More: to one device and back.
  EXPECT_EQ(
      sent_by(*compile(graph_of(everybody(2, {{10}, {20}}, "auto")))).messages,
      2);
  EXPECT_EQ(
      sent_by(*compile(graph_of(everybody(4, {{10}, {20}}, "auto")))).messages,
      6);
  // The result is sent to the one device that wants it.
  Step s = everybody(4, {{10}, {20}}, "auto");
  s.options.replicas = {2};
  EXPECT_EQ(sent_by(*compile(graph_of(s))).messages, 3);
}

TEST_F(Between, LargeBucketsOfManyDevicesGoRoundARing) {
  const int64_t n = kSmallBytes;  // elements
  const Sent sent = sent_by(*compile(graph_of(everybody(4, {{n}}, "auto"))));
  EXPECT_EQ(sent.messages, 2 * 3 * 4);
  EXPECT_EQ(sent.total, 2 * 3 * n * 4);
}

TEST_F(Between, AnUnknownAlgorithmIsRefused) {
  try {
    compile(graph_of(everybody(2, {{10}}, "butterfly")));
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("\"butterfly\""), std::string::npos);
  }
}

// The sum along the tree over slices [begin, end) of a subtree of `width`.
float tree(const std::vector<float>& slices, size_t begin, size_t width) {
  if (width == 1) return slices[begin];
  const float left = tree(slices, begin, width / 2);
  const size_t right = begin + width / 2;
  return right < slices.size() ? left + tree(slices, right, width / 2) : left;
}

// The pieces of slices [first, last): roots of subtrees.
void add_roots(const std::vector<float>& slices, size_t first, size_t last,
               int owner, AllReduceOptions* o, std::vector<float>* pieces) {
  size_t root = 1;
  while (root < slices.size()) root *= 2;
  const std::function<void(size_t, size_t)> visit = [&](size_t at,
                                                        size_t width) {
    const size_t end = std::min(at + width, slices.size());
    if (at >= last || end <= first || at >= slices.size()) return;
    if (at >= first && end <= last) {
      o->owners.push_back(owner);
      o->starts.push_back(static_cast<int64_t>(at));
      pieces->push_back(tree(slices, at, width));
      return;
    }
    visit(at, width / 2);
    visit(at + width / 2, width / 2);
  };
  visit(0, root);
}

TEST_F(Between, BitsDoNotDependOnWhoHasWhichSlices) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const size_t total = 1 + random() % 9;
    std::vector<float> slices(total);
    for (float& s : slices) {
      s = std::ldexp(static_cast<float>(random() % 1000) + 0.37f,
                     static_cast<int>(random() % 20) - 10);
    }
    size_t width = 1;
    while (width < total) width *= 2;
    const float want = tree(slices, 0, width);
    Step s;
    s.shapes = {{1}};
    // Replicas 0 to 4; some without slices, some with a common memory.
    s.devices = gpus();
    s.devices.push_back(full_name(round % 2 ? "GPU" : "CPU", 0));
    s.options.replicas = {static_cast<int64_t>(random() % 5)};
    const char* algorithms[] = {"auto", "direct", "one_device"};
    s.options.algorithm = algorithms[round % 3];
    std::vector<float> pieces;
    size_t first = 0;
    for (int r = 0; r < 5; ++r) {
      const size_t last =
          r == 4 ? total : first + random() % (total - first + 1);
      add_roots(slices, first, last, (r * 2 + round) % 5, &s.options, &pieces);
      first = last;
    }
    const auto plan = compile(graph_of(s));
    Tensors args;
    for (const float p : pieces) {
      args.push_back(with_device("/CPU:0", [&] { return constant({p / 2}); }));
    }
    const float got = run(*plan, args, 1)[0].to_vector<float>()[0];
    EXPECT_EQ(got, want - 1) << "round " << round;
  }
}

}  // namespace
}  // namespace berth
