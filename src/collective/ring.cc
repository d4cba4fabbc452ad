// All-reduce in a ring: each device sends to the next one only. The list is
// split into as many parts as there are devices; each part goes round once to
// be added, and once more, whole, to the stations that want it.

#include <map>
#include <utility>
#include <vector>

#include "collective/packed_bucket.h"

namespace berth {

namespace {

class Ring {
 public:
  explicit Ring(PackedBucket& bucket)
      : bucket_(bucket), ring_(bucket.givers()), n_(ring_.size()) {}

  // All parts hop by hop: the order in which they are sent.
  Sums run() {
    cut();
    for (size_t hop = 1; hop < n_; ++hop) {
      for (Part& part : parts_) add(part, hop);
    }
    for (Part& part : parts_) part.way = way_from(part.at);
    for (size_t hop = 0; hop < bucket_.num_stations(); ++hop) {
      for (Part& part : parts_) pass_on(part, hop);
    }
    Sums sums(bucket_.num_stations());
    for (const int s : bucket_.takers()) {
      std::vector<ValueRef> parts;
      for (const Part& part : parts_) parts.push_back(part.sums.at(s));
      sums[s] = bucket_.concat(parts, s);
    }
    return sums;
  }

 private:
  // A part of the list that goes round, starting at station `first`.
  struct Part {
    size_t first = 0;
    int64_t begin = 0, count = 0;
    ValueRef sum;                  // so far
    size_t at = 0;                 // its place in the ring
    std::vector<int> way;          // receivers of the sum, in order
    std::map<int, ValueRef> sums;  // by station
  };

  void cut() {
    for (const int s : ring_) own_.push_back(bucket_.sum_of(s));
    const auto n = static_cast<int64_t>(n_);
    for (int64_t k = 0; k < n; ++k) {
      Part part;
      part.first = part.at = static_cast<size_t>(k);
      part.begin = bucket_.elements() * k / n;
      part.count = bucket_.elements() * (k + 1) / n - part.begin;
      if (part.count == 0) continue;
      part.sum = piece(part, part.at);
      parts_.push_back(std::move(part));
    }
  }

  ValueRef piece(const Part& part, size_t at) {
    return bucket_.rows(own_[at], part.begin, part.count,
                        bucket_.station(ring_[at]).device);
  }

  // Takes the part to the next station, which adds its own.
  void add(Part& part, size_t hop) {
    part.at = (part.first + hop) % n_;
    const ValueRef mine = piece(part, part.at);
    const PackedBucket::AfterHops hops(bucket_, static_cast<int>(hop));
    part.sum = bucket_.add(part.sum, mine, ring_[part.at]);
    if (hop + 1 == n_) part.sum = bucket_.mean(part.sum, ring_[part.at]);
  }

  // The receivers of the sum, from `at` round the ring, then those outside it.
  std::vector<int> way_from(size_t at) const {
    std::vector<int> way;
    for (size_t k = 0; k < n_; ++k) {
      const int s = ring_[(at + k) % n_];
      if (bucket_.station(s).wants) way.push_back(s);
    }
    for (const int s : bucket_.takers()) {
      if (bucket_.station(s).pieces.empty()) way.push_back(s);
    }
    return way;
  }

  void pass_on(Part& part, size_t hop) {
    if (hop >= part.way.size()) return;
    const int to = part.way[hop];
    if (to != ring_[part.at]) {
      const PackedBucket::AfterHops hops(bucket_,
                                         static_cast<int>(n_ - 1 + hop));
      part.sum = bucket_.bring(part.sum, to);
    }
    part.sums[to] = part.sum;
  }

  PackedBucket& bucket_;
  const std::vector<int>& ring_;  // stations
  const size_t n_;
  std::vector<ValueRef> own_;  // by place in the ring
  std::vector<Part> parts_;
};

}  // namespace

Sums reduce_in_a_ring(PackedBucket& bucket) { return Ring(bucket).run(); }

}  // namespace berth
