// Pipeline: the stages of a PipelineStrategy, and where nodes of its steps are.
//
// A micro-batch is split off as a replica is (data_parallel/split_batch.h): all
// of them have the same devices. What is new is which stage a node belongs to
// and the order in which the devices run micro-batches.

#ifndef BERTH_DISTRIBUTE_PIPELINE_PIPELINE_H_
#define BERTH_DISTRIBUTE_PIPELINE_PIPELINE_H_

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "distribute/pipeline/balance.h"
#include "distribute/pipeline/schedule.h"
#include "graph/graph.h"

namespace berth::distribute {

// The stage and the pass of a node: 'F', or 'B', 'I' or 'W'.
struct StagePlace {
  int32_t stage = -1;
  char pass = 'F';
};
// By the name that the node was traced with (NodeSource::name).
using StagePlaces = std::unordered_map<std::string, StagePlace>;

// Thread-safe.
class Pipeline {
 public:
  // `devices`: full names. Throws errors::InvalidArgument for options that do
  // not fit them; `site` is the user's line.
  Pipeline(PipelineOptions options, std::vector<DeviceId> devices, Site site);

  const PipelineOptions& options() const { return options_; }
  const std::vector<DeviceId>& devices() const { return devices_; }
  ScheduleShape shape(int micro_batches) const;
  // Instructions of a batch of that many parts. Throws errors::InvalidArgument
  // if the schedule cannot have them.
  PipelineActions actions(int micro_batches) const;

  // The device of a layer, "/GPU:1" counted within the pipeline, when it is
  // called: one that was not seen before belongs to the stage that began last.
  // "": device scopes or cut_stages() decide.
  std::string device_of_layer(const std::string& path);

  // Whether the options name no stages.
  bool is_open() const { return options_.stages.empty(); }

  // If neither the options nor device scopes say where stages begin: cuts the
  // layers of this step, unless that is done. Throws errors::InvalidArgument
  // for fewer layers than stages.
  void cut_stages(const Graph& graph);

  // Gives every node of a step a stage, and makes it request the device of
  // that. Throws errors::InvalidArgument for a layer of the options that the
  // model lacks, and for a node in a stage before that of its inputs.
  StagePlaces place(Graph& graph) const;

  // Puts variables that strategy `owner` made outside of device scopes, which
  // wait on the host, on the device of the stage that reads them, those that
  // none reads on the first.
  // Throws errors::FailedPrecondition if another plan uses one elsewhere.
  void move_variables(const Graph& graph, const StagePlaces& places,
                      const void* owner) const;

 private:
  // Whether a backward pass is run in two halves.
  bool splits_backward() const;
  int stage_of(const Node& node) const;
  int stage_of_layer(const std::string& path) const;
  std::vector<StageOn> stages_on(bool trains) const;
  std::string device_name(int stage) const;
  void check_layers_seen() const;
  void check_all_asked_for(const std::vector<StagePlace>& at) const;

  const PipelineOptions options_;
  const std::vector<DeviceId> devices_;
  const Site site_;
  PipelineActions given_;  // the options' instructions
  mutable std::mutex mutex_;
  std::map<std::string, int> stage_of_layer_;
  std::vector<std::string> order_;  // layers as they were seen
  int begun_ = 0;                   // stages
};

// The node of the variable that a value is, or is read from; -1: of none.
int32_t variable_of(const Graph& graph, ValueRef v);

// By variable's node, the least of the numbers of the nodes that use it; of one
// that only an update uses, that of the others in the update. -1: none.
std::vector<int32_t> number_of_variables(const Graph& graph,
                                         const std::vector<int32_t>& number);

// Puts the nodes of a step that was split over micro-batches in the order of
// the instructions. What a step has once comes right after what it needs.
void order_by_schedule(Graph& graph, const StagePlaces& places,
                       const PipelineActions& actions);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PIPELINE_PIPELINE_H_
