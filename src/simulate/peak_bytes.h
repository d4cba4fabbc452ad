// PeakBytes: the most bytes that are live at once on each device, once all
// start and end times are known.
//
// The rules are the simulator's (simulate.h): a buffer needs its bytes from its
// start up to, but not at, its end. Internal to the module; one thread per
// object, which allocates only when constructed.

#ifndef BERTH_SIMULATE_PEAK_BYTES_H_
#define BERTH_SIMULATE_PEAK_BYTES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "simulate/pair_slots.h"
#include "simulate/simulate.h"
#include "simulate/step_timer.h"

namespace berth {

// Returns the maximum number of copies in any plan.
size_t max_copies(const SimulatedGraph& graph, const Machine& machine);

class PeakBytes {
 public:
  // `order`: topological; it must outlive this.
  PeakBytes(const SimulatedGraph& graph, const CostTable& costs,
            std::span<const int32_t> order);

  // Returns bytes per device, valid until the next call. Bytes beyond 2^53 are
  // rounded.
  std::span<const int64_t> compute(const PlacePlan& plan,
                                   std::span<const TimeSpan> spans,
                                   std::span<const StepTimer::Event> events);

 private:
  struct Buffer {
    int32_t device = 0;
    double bytes = 0;
    double start = 0, end = 0;
  };
  struct Change {
    double us;
    double bytes;  // below 0: freed
    int32_t device;
  };

  void reset();
  void add_source(const PlacePlan& plan, int32_t node);
  void add_op(const PlacePlan& plan, const TimeSpan& span, int32_t node);
  int32_t& copy_at(int32_t value, int32_t device);
  int32_t buffer_at(const PlacePlan& plan, int32_t value, int32_t device);
  void use(int32_t buffer, double until);
  void add(const Buffer& buffer);
  void sort();
  void sweep();

  const SimulatedGraph& graph_;
  const CostTable& costs_;
  std::span<const int32_t> order_;
  std::vector<Buffer> buffers_;     // values at home, by index; then copies
  std::vector<int32_t> buffer_of_;  // per value, at home; -1: held throughout
  std::vector<int32_t> copy_at_;    // per pair: buffer; -1: none
  PairSlots pairs_;
  std::vector<uint8_t> seen_;  // per device
  std::vector<Change> changes_, sorted_;
  std::vector<size_t> slice_at_;
  std::vector<double> live_, peak_;  // per device
  std::vector<int64_t> result_;
};

}  // namespace berth

#endif  // BERTH_SIMULATE_PEAK_BYTES_H_
