// The analysis for split_batch.h: what splitting a batch does to each value
// of a graph.
//
// Walks the graph once, forward, and picks a split signature per node. Uses the
// split rules only. One thread.

#ifndef BERTH_DISTRIBUTE_DATA_PARALLEL_SHARDING_ANALYSIS_H_
#define BERTH_DISTRIBUTE_DATA_PARALLEL_SHARDING_ANALYSIS_H_

#include <cstdint>
#include <vector>

#include "exec/part_kernels.h"
#include "graph/graph.h"

namespace berth::distribute {

struct SplitState {
  enum class Kind : uint8_t {
    kWhole,
    kSplit,    // split along `axis`, examples in order
    kPartial,  // parts that add up
  };
  Kind kind = Kind::kWhole;
  int8_t axis = 0;
};

// How a node is made.
struct SplitChoice {
  enum class Kind : uint8_t {
    kWhole,    // from whole inputs
    kCut,      // by `signature`, once per part of the batch
    kThrough,  // on each partial sum separately: the op is linear
  };
  Kind kind = Kind::kWhole;
  const SplitSignature* signature = nullptr;  // kCut
  int32_t index = -1;                         // of the signature; -1: none
};

struct SplitStates {
  std::vector<std::vector<SplitState>> values;  // by node, by output
  std::vector<SplitChoice> nodes;
  // Nodes that run whole although a split value feeds them.
  std::vector<int32_t> whole;
};

// A node with `examples` of the `batch`.
struct LocalNode {
  AttrsRef attrs;
  std::vector<OutSpec> outputs;
};

class SplitAnalysis {
 public:
  // `lengths`: numbers of examples that parts have. `exact`: nothing is added
  // to partial sums before these are summed. `unit` divides the borders of all
  // parts: axes shorter than the batch are split only where each part has whole
  // elements (groups of examples).
  // `layers`: variables that have an axis are split along it, in `batch` units,
  // and arguments are whole.
  SplitAnalysis(const Graph& graph, int64_t batch, std::vector<int64_t> lengths,
                int64_t unit, bool exact, bool layers = false);

  SplitStates run();
  // run() in steps: start(), then visit() of every node, each after those that
  // it reads; states() may be changed between.
  void start();
  void visit(int32_t node);
  SplitStates& states() { return states_; }
  const SplitStates& states() const { return states_; }

  // The spec of a part of a value, with `examples` examples.
  OutSpec local(const OutSpec& whole, SplitState state, int64_t examples) const;
  // Infers a split node again on parts. Returns false if its attributes cannot
  // express the shape of a part.
  bool localize(int32_t node, const SplitChoice& choice, int64_t examples,
                LocalNode* out) const;
  static SplitState state_of(int8_t axis);
  // Attributes of a Range whose elements are `count` of those of `n`.
  static AttrsRef range_attrs(const Node& n, int64_t first, int64_t count);

 private:
  SplitChoice choose(int32_t node);
  bool accepts(int32_t node, const SplitSignature& s, int* gathers) const;
  bool linear(const Node& n) const;
  bool is_first_axis(int32_t node, const SplitSignature& s) const;
  bool can_cut(int64_t length) const { return length * unit_ % batch_ == 0; }
  bool has_divided_variable(const Node& n) const;
  const SplitSignature* reshape_rule(int32_t node) const;
  const SplitSignature* read_rule(int32_t node) const;

  const Graph& graph_;
  const int64_t batch_;
  const std::vector<int64_t> lengths_;
  const int64_t unit_;
  const bool exact_;
  const bool layers_;
  PartBinder binder_;
  SplitStates states_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DATA_PARALLEL_SHARDING_ANALYSIS_H_
