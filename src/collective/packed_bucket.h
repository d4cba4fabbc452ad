// PackedBucket: a bucket as one list of elements per device, and the algorithms
// between memories over such lists.
//
// Internal to lower_device_allreduce(). One thread.

#ifndef BERTH_COLLECTIVE_PACKED_BUCKET_H_
#define BERTH_COLLECTIVE_PACKED_BUCKET_H_

#include <string>
#include <vector>

#include "collective/device_allreduce.h"
#include "collective/emit.h"

namespace berth {

// A memory that takes part.
struct Station {
  std::string memory;
  DeviceId device;             // that it computes on
  std::vector<Addend> pieces;  // flat: [elements]; of all items
  bool wants = false;          // whether a replica there wants the result
};

class PackedBucket {
 public:
  PackedBucket(Emit& emit, const Bucket& bucket, const Turn& turn);

  int64_t elements() const { return elements_; }
  int64_t bytes() const {
    return elements_ * static_cast<int64_t>(size_of(bucket_.dtype));
  }
  bool ordered() const { return ordered_; }
  DType dtype() const { return bucket_.dtype; }
  // The name of the first of its reductions.
  const std::string& name() const { return emit_.graph()[like_].name; }
  double timeout_seconds() const { return bucket_.timeout_seconds; }
  size_t num_stations() const { return stations_.size(); }
  const Station& station(int s) const { return stations_[s]; }
  // Stations with pieces, and those that want the sum, in order of replicas.
  const std::vector<int>& givers() const { return givers_; }
  const std::vector<int>& takers() const { return takers_; }
  // All pieces, ordered by their starts or by stations.
  std::vector<Addend> pieces() const;

  // Elements [begin, begin + count) of a list, on its device.
  ValueRef rows(ValueRef v, int64_t begin, int64_t count, DeviceId device);
  // The value on the device of a station: a copy that others may forward.
  ValueRef bring(ValueRef v, int station);
  ValueRef concat(const std::vector<ValueRef>& parts, int station);
  // The sum of all the pieces, on the station, divided for a mean.
  ValueRef total(std::vector<Addend> pieces, int station);
  // The pieces of one station in order, undivided.
  ValueRef sum_of(int station);
  ValueRef add(ValueRef a, ValueRef b, int station);
  ValueRef mean(ValueRef sum, int station);
  // A node of another op, on the station.
  ValueRef node(const char* op, ValueRef input, AttrsRef attrs, int station,
                const char* what);
  // The node of `after` runs after that of `before`.
  void order(ValueRef before, ValueRef after) {
    emit_.order(before.node, after.node);
  }

  // While it lives, emitted nodes count as `hops` hops away.
  class AfterHops {
   public:
    AfterHops(PackedBucket& bucket, int hops)
        : bucket_(bucket), hops_(hops), first_(bucket.emit_.graph().size()) {
      bucket.emit_.set_turn(bucket.turn_.number + hops);
    }
    ~AfterHops() { bucket_.place_behind(first_, hops_); }
    AfterHops(const AfterHops&) = delete;
    AfterHops& operator=(const AfterHops&) = delete;

   private:
    PackedBucket& bucket_;
    const int hops_;
    const int32_t first_;
  };

  // Replaces the results by views of the sums, by station.
  void unpack(const std::vector<ValueRef>& sums);

 private:
  int station_of(DeviceId device);
  void find_stations();
  void pack();
  void place_behind(int32_t first, int hops);

  Emit& emit_;
  const Bucket& bucket_;
  const Turn& turn_;
  const int32_t like_;
  bool ordered_ = false;
  int64_t elements_ = 0;
  std::vector<Station> stations_;
  std::vector<int> givers_, takers_;
};

// Each returns the sum by station; node -1 where it is not wanted.
using Sums = std::vector<ValueRef>;
Sums reduce_directly(PackedBucket& bucket);
Sums reduce_in_a_ring(PackedBucket& bucket);
Sums reduce_in_pairs(PackedBucket& bucket);
Sums reduce_on_one_device(PackedBucket& bucket);
Sums reduce_by_exchange(PackedBucket& bucket);
// Needs share_library(), and that all give and take.
Sums reduce_by_library(PackedBucket& bucket);

}  // namespace berth

#endif  // BERTH_COLLECTIVE_PACKED_BUCKET_H_
