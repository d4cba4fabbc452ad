// Writes the graph of a split step: places every node as the analysis decided.

#ifndef BERTH_DISTRIBUTE_DATA_PARALLEL_EMIT_GRAPH_H_
#define BERTH_DISTRIBUTE_DATA_PARALLEL_EMIT_GRAPH_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "distribute/data_parallel/required_values.h"

namespace berth::distribute {

class SplitEmit {
 public:
  SplitEmit(const Graph& from, const SplitPlan& plan, const SplitPlaces& places,
            const SplitAnalysis& analysis, const SplitStates& states,
            const SplitNeeds& needs, const SplitNeeds* of_all = nullptr);

  Graph run();

 private:
  // Replacements of one value of the old graph; node -1: not made.
  struct Made {
    std::vector<ValueRef> whole;   // by memory
    std::vector<ValueRef> parts;   // by replica
    std::vector<ValueRef> pieces;  // by piece
  };
  // One copy of a node.
  struct Copy {
    int replica, memory;
    int32_t node;
  };
  Made& made(ValueRef v) { return made_[v.node][v.output]; }
  const SplitState& state(ValueRef v) const {
    return states_.values[v.node][v.output];
  }

  void emit(int32_t i);
  void emit_arg(int32_t i);
  void emit_handle(int32_t i);
  void emit_shards(int32_t i);
  void emit_whole(int32_t i);
  void emit_cut(int32_t i);
  void join_pieces(int32_t i);
  void emit_through(int32_t i);
  // Makes the whole of partial sums where it is needed.
  void reduce(int32_t i);
  void add_pieces(ValueRef v);

  // Where tasks meet (split_tasks.cc), with the same numbers in all.
  void find_meetings();
  bool is_here(int replica) const { return plan_.tasks.is_here(replica); }
  bool meets(ValueRef v) const;
  Node meeting(ValueRef v, const char* op, const char* what,
               std::vector<Attrs::Pair> attrs);
  void reduce_over_tasks(ValueRef v);
  void gather_over_tasks(ValueRef v);
  void gather_argument(int32_t i);
  void put_results(ValueRef v, Node node);

  // Another form of the value, made on first use.
  ValueRef whole_at(ValueRef v, int memory);
  ValueRef gathered(ValueRef v, int memory);
  // Concatenates some of the parts of `v`.
  ValueRef joined(ValueRef v, std::vector<ValueRef> parts, const Copy& where);
  ValueRef part_of(ValueRef v, int replica, int8_t axis);
  ValueRef piece_of(ValueRef v, size_t piece, int8_t axis);
  // Examples of `of`, along `axis`.
  ValueRef cut(ValueRef of, int8_t axis, int64_t begin, int64_t count,
               const Node& like, const Copy& where);

  std::string copy_suffix(int replica) const;
  // A copy of an old node without inputs, for a replica or a memory.
  Node copy_of(int32_t i, const Copy& where) const;
  int32_t add(Node node) { return to_.add(std::move(node)); }
  void add_copy(int32_t i, Copy where, Node node);
  std::shared_ptr<const NodePart> part(int32_t i, const SumPiece& piece) const;
  std::vector<DeviceId> devices_of(const Copy& where) const;
  DeviceId device_of(const Node& like, const Copy& where) const;
  std::vector<int32_t> controls(int32_t i, const Copy& where) const;

  const Graph& from_;
  const SplitPlan& plan_;
  const SplitPlaces& places_;
  const SplitAnalysis& analysis_;
  const SplitStates& states_;
  const SplitNeeds& needs_;
  Graph to_;
  std::vector<std::vector<Made>> made_;
  std::vector<std::vector<Copy>> copies_;
  // (value, replica or piece, axis) -> slice; pieces come after replicas.
  std::map<std::tuple<ValueRef, size_t, int>, ValueRef> cuts_;
  std::vector<SumPiece> by_replica_;  // all examples of each
  const SplitNeeds* of_all_;          // needs of any task; null: one task
  std::vector<bool> needed_whole_;    // arguments, if tasks have parts
  std::vector<int64_t> level_;        // meetings before a node
  std::vector<bool> feeds_;           // some meeting needs the node
  std::vector<ValueRef> argument_;    // as passed in
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DATA_PARALLEL_EMIT_GRAPH_H_
