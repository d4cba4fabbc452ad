// What a task reads of a dataset that several tasks share (data_options.h).
//
// Policies are resolved before a pass begins; `distribute` checks that all
// tasks choose the same one.

#ifndef BERTH_DATA_AUTO_SHARD_H_
#define BERTH_DATA_AUTO_SHARD_H_

#include <string>

#include "berth/data_options.h"
#include "data/node.h"

namespace berth::data {

// Whether a node of the chain reads files, or makes datasets that do.
bool reads_files(const Node& node);

// Where a dataset can be split by file.
struct FileSplit {
  const Node* at = nullptr;  // null: `why_not`
  int64_t files = 0;
  std::string why_not;
};
FileSplit file_split(const Dataset& dataset);

// Whether shard(SHARD_HINT, SHARD_HINT) is in the chain.
bool has_hint(const Node& node);

// Task `index` of so many: what `policy` lets it read, cut so that as many
// elements come of a batch as there are tasks, those without examples left out.
// kFile wants a file_split(). Not for kAuto and kData.
Dataset part_of_task(const Dataset& dataset, AutoShardPolicy policy,
                     int64_t tasks, int64_t index);

}  // namespace berth::data

#endif  // BERTH_DATA_AUTO_SHARD_H_
