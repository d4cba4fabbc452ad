// Looks for races in the text of a plan: two steps of different streams that
// touch the same memory, one of them writing, with nothing that orders them.
//
// A check of what exec builds that shares no code with it: it reads streams,
// waits, operands and offsets. Updates of a variable by several devices are
// taken to change ranges of their own.

#ifndef BERTH_CONFORMANCE_STRATEGY_PLAN_RACES_H_
#define BERTH_CONFORMANCE_STRATEGY_PLAN_RACES_H_

#include <string>

namespace berth::strategy_suite {

// Returns the first race, "" when there is none.
std::string race_in(const std::string& plan_text);

}  // namespace berth::strategy_suite

#endif  // BERTH_CONFORMANCE_STRATEGY_PLAN_RACES_H_
