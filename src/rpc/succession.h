// Succession: which task coordinates, where tasks may take over.
//
// A task that forms the cluster asks all others, over proved connections, and
// follows one whose generation runs; else the first place that coordinates;
// else the first one that is there does. A coordinator asks on until its
// generation runs, and leaves it to one that comes before it. One thread.

#ifndef BERTH_RPC_SUCCESSION_H_
#define BERTH_RPC_SUCCESSION_H_

#include <optional>
#include <string>
#include <vector>

#include "rpc/dialer.h"
#include "rpc/membership.h"

namespace berth::rpc {

// What a task says of itself.
struct WhoAnswer {
  bool there = false;  // it answered
  bool coordinates = false, running = false;
  uint64_t generation = 0;
};

// The answer of this task; call it with the lock held.
std::string who_answer(const Membership& m);
WhoAnswer parse_who(const std::string& text);

// Asks all places but the own one, which stays empty, at the same time.
std::vector<WhoAnswer> ask_all(const Membership& m, Dialer& dialer);

// The place to follow; none: ask again. `coordinates`: this one does.
std::optional<size_t> choose_head(const std::vector<WhoAnswer>& answers,
                                  size_t own, bool coordinates);

}  // namespace berth::rpc

#endif  // BERTH_RPC_SUCCESSION_H_
