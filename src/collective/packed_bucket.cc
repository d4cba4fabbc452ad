#include "collective/packed_bucket.h"

#include <algorithm>
#include <utility>

#include "device/memory_space.h"

namespace berth {

PackedBucket::PackedBucket(Emit& emit, const Bucket& bucket, const Turn& turn)
    : emit_(emit), bucket_(bucket), turn_(turn), like_(bucket.items[0].node) {
  for (const AllReduceRequest& r : bucket.items) {
    elements_ += emit.graph().spec(r.pieces[0].value).shape.num_elements();
  }
  ordered_ = bucket.items[0].pieces[0].start >= 0;
  find_stations();
  emit.set_turn(turn.number);
  pack();
}

int PackedBucket::station_of(DeviceId device) {
  const std::string memory = memory_of(device);
  const auto it =
      std::find_if(stations_.begin(), stations_.end(),
                   [&](const Station& s) { return s.memory == memory; });
  if (it != stations_.end()) return static_cast<int>(it - stations_.begin());
  stations_.push_back({memory, device, {}, false});
  return static_cast<int>(stations_.size()) - 1;
}

void PackedBucket::find_stations() {
  const AllReduceRequest& first = bucket_.items[0];
  std::vector<Addend> by_owner = first.pieces;
  std::stable_sort(
      by_owner.begin(), by_owner.end(),
      [](const Addend& a, const Addend& b) { return a.owner < b.owner; });
  for (const Addend& p : by_owner) {
    const int s = station_of(p.device);
    if (std::find(givers_.begin(), givers_.end(), s) == givers_.end()) {
      givers_.push_back(s);
    }
  }
  for (const AllReduceRequest& r : bucket_.items) {
    for (const SumReader& result : r.results) {
      stations_[station_of(result.device)].wants = true;
    }
  }
  for (size_t s = 0; s < stations_.size(); ++s) {
    if (stations_[s].wants) takers_.push_back(static_cast<int>(s));
  }
}

// All items have the same pieces, in one order.
void PackedBucket::pack() {
  for (size_t k = 0; k < bucket_.items[0].pieces.size(); ++k) {
    Addend packed = bucket_.items[0].pieces[k];
    std::vector<ValueRef> flat;
    for (const AllReduceRequest& r : bucket_.items) {
      flat.push_back(emit_.flat(r.pieces[k].value, packed.device, r.node));
    }
    const int s = station_of(packed.device);
    packed.value =
        flat.size() == 1
            ? flat[0]
            : emit_.node("ConcatV2", flat, AttrsRef({{"axis", int64_t{0}}}),
                         packed.device, like_, "packed");
    stations_[s].pieces.push_back(std::move(packed));
  }
}

std::vector<Addend> PackedBucket::pieces() const {
  std::vector<Addend> all;
  for (const int s : givers_) {
    const auto& own = stations_[s].pieces;
    all.insert(all.end(), own.begin(), own.end());
  }
  if (ordered_) find_ends(all);
  return all;
}

ValueRef PackedBucket::rows(ValueRef v, int64_t begin, int64_t count,
                            DeviceId device) {
  if (begin == 0 && count == elements_) return v;
  return emit_.rows(v, begin, count, device, like_);
}

ValueRef PackedBucket::bring(ValueRef v, int station) {
  const int64_t count = emit_.graph().spec(v).shape[0];
  return emit_.rows(v, 0, count, stations_[station].device, like_);
}

ValueRef PackedBucket::concat(const std::vector<ValueRef>& parts, int station) {
  if (parts.size() == 1) {
    const DeviceId from = emit_.graph()[parts[0].node].requested;
    const bool here = memory_of(from) == stations_[station].memory;
    return here ? parts[0] : bring(parts[0], station);
  }
  return emit_.node("ConcatV2", parts, AttrsRef({{"axis", int64_t{0}}}),
                    stations_[station].device, like_, "result");
}

ValueRef PackedBucket::add(ValueRef a, ValueRef b, int station) {
  return emit_.add(a, b, stations_[station].device, like_);
}

ValueRef PackedBucket::node(const char* op, ValueRef input, AttrsRef attrs,
                            int station, const char* what) {
  return emit_.node(op, {input}, std::move(attrs), stations_[station].device,
                    like_, what);
}

ValueRef PackedBucket::mean(ValueRef sum, int station) {
  if (!bucket_.mean) return sum;
  return emit_.divide(sum, bucket_.owners, stations_[station].device, like_);
}

ValueRef PackedBucket::total(std::vector<Addend> pieces, int station) {
  const DeviceId device = stations_[station].device;
  const std::vector<Addend> left =
      add_up(emit_, std::move(pieces), device, like_);
  ValueRef sum = left[0].value;
  // Starts that do not form a tree are added in order.
  for (size_t k = 1; k < left.size(); ++k) {
    sum = emit_.add(sum, left[k].value, device, like_);
  }
  return mean(sum, station);
}

ValueRef PackedBucket::sum_of(int station) {
  const Station& s = stations_[station];
  ValueRef sum = s.pieces[0].value;
  for (size_t k = 1; k < s.pieces.size(); ++k) {
    sum = emit_.add(sum, s.pieces[k].value, s.device, like_);
  }
  return sum;
}

void PackedBucket::place_behind(int32_t first, int hops) {
  const auto& last = turn_.last_pieces;
  for (int32_t i = first; i < emit_.graph().size(); ++i) {
    // Readers of what was just added come later anyway.
    const Node& n = emit_.graph()[i];
    const auto elsewhere = [&](int32_t node) {
      return memory_of(emit_.graph()[node].requested) != memory_of(n.requested);
    };
    const bool arrives =
        std::any_of(n.inputs.begin(), n.inputs.end(),
                    [&](const ValueRef v) { return elsewhere(v.node); }) ||
        std::any_of(n.controls.begin(), n.controls.end(), elsewhere);
    if (!arrives) continue;
    const DeviceId device = n.requested;
    for (int at = std::min(hops, static_cast<int>(last.size()) - 1); at >= 0;
         --at) {
      const auto it = last[at].find(device);
      if (it == last[at].end()) continue;
      emit_.order(it->second, i);
      break;
    }
  }
}

void PackedBucket::unpack(const std::vector<ValueRef>& sums) {
  int64_t begin = 0;
  std::vector<ValueRef> views(stations_.size());
  for (const AllReduceRequest& r : bucket_.items) {
    const Shape shape = emit_.graph().spec(r.pieces[0].value).shape;
    const int64_t count = shape.num_elements();
    std::fill(views.begin(), views.end(), ValueRef{});
    std::vector<int32_t> done;
    for (const SumReader& result : r.results) {
      const int s = station_of(result.device);
      const DeviceId device = stations_[s].device;
      if (views[s].node < 0) {
        views[s] = rows(sums[s], begin, count, device);
        if (shape.rank() != 1) {
          views[s] = emit_.reshape(views[s], shape, device, r.node);
        }
        done.push_back(views[s].node);
      }
      emit_.replace(r.node, result.output, views[s]);
    }
    emit_.drop(r.node, std::move(done));
    begin += count;
  }
}

}  // namespace berth
