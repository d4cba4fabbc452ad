// split_vocabulary: lookups in tables, and cross entropies, of which each
// device has some of the classes.
//
// No split rule can say what these are: a part of a table is asked for rows
// that others have, and the largest logit is that of no sum. They become ops
// that have rules (Shoeybi et al. 2019, section 3): a lookup in each part, of
// which all rows but its own count as 0, and sums of them; exponentials
// relative to the largest of each part's largest logit, whose sums are added.
// One thread.

#ifndef BERTH_DISTRIBUTE_DATA_PARALLEL_SPLIT_VOCABULARY_H_
#define BERTH_DISTRIBUTE_DATA_PARALLEL_SPLIT_VOCABULARY_H_

#include "distribute/data_parallel/sharding_analysis.h"

namespace berth::distribute {

// Rewrites GatherV2 of a value that is split along the gathered axis 0,
// GatherGrad whose result a divided variable of that shape will take, and
// softmaxes and cross entropies of logits that are split along the last axis.
// `units`: in how many parts axes are cut. Returns whether there was one.
bool split_vocabulary(Graph& graph, const SplitStates& states, int64_t units);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DATA_PARALLEL_SPLIT_VOCABULARY_H_
