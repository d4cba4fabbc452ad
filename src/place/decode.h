// Decoder: how long a plan's step takes, many thousand times a second.
//
// The simulator's rules (simulate.h) as one straight loop over the plan's
// sequence, and again from a changed position: what a search asks after each
// move. Buses are ignored: with them a step takes this long at least, and the
// Simulator says how long. All arrays are made by the constructor: no call
// allocates but the first of peak_bytes() and events(). One thread per Decoder;
// graph and costs are only read and must outlive it.

#ifndef BERTH_PLACE_DECODE_H_
#define BERTH_PLACE_DECODE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "place/simulate.h"

namespace berth {

class Decoder {
 public:
  // When a node runs. What takes no time has one start and end.
  struct Span {
    double start_us = 0, end_us = 0;
  };

  // A copy of a value, or (to = -1) an alias.
  struct Event {
    int32_t number;    // of the value; of the node that is an alias
    int32_t to;        // device
    int32_t position;  // in front of the op there, in the sequence
    double start_us, end_us;
  };

  // Throws errors::InvalidArgument when the costs are those of another graph or
  // machine, or the graph has a cycle.
  Decoder(const SimulatedGraph& graph, const CostTable& costs);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  // Plans given below must have a device for every node and every op that
  // takes time in the sequence, once, behind what it waits for (check_plan);
  // nothing of that is checked here. Steps that cannot be, as a device has no
  // kernel for an op, take infinitely long.

  // Decodes a plan from its beginning and keeps it. Returns its step.
  double decode(const PlacePlan& plan);

  // Decodes a plan that is the kept one but for the sequence from position
  // `first` on, the devices of ops from there on and those of nodes that take
  // no time. Returns its step; infinity as soon as it is certain to be longer
  // than `stop_above`, that is, when an op's end and the least time of the
  // longest path behind it are. The kept plan stays.
  double try_from(const PlacePlan& changed, int32_t first, double stop_above);

  // Keeps the plan that was tried last, which must not have changed since and
  // whose step was finite. O(positions from `first`, nodes without time).
  void accept();

  // Of the kept plan.
  double step_us() const;

  // Of the plan decoded last: the tried one, or when that was stopped, the kept
  // one.
  std::span<const Span> spans() const;
  double start_us(int32_t node) const { return spans()[node].start_us; }
  double end_us(int32_t node) const { return spans()[node].end_us; }

  // The most bytes that are live at once on each device, by the simulator's
  // rules, in the plan decoded last; one that is not kept must not have
  // changed since.
  // O(n log n).
  std::span<const int64_t> peak_bytes();

  // All nodes in an order in which none comes before what it waits for.
  std::span<const int32_t> topological_order() const;

  // The least time that passes between the end of this node and the end of any
  // step, on any devices: the longest path of least op times.
  double path_behind_us(int32_t node) const;

  // Copies, and aliases that stand between them, of the plan decoded last (as
  // above), in its order. Valid until the next call.
  std::span<const Event> events();

  // The time of one copy.
  double copy_us(int32_t value, int32_t from, int32_t to) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth

#endif  // BERTH_PLACE_DECODE_H_
