// Segment: the memory file of the tasks of one host, mapped by each.
//
// Its leader makes it, of a size that is sealed, and sends its descriptor to
// the others over authenticated Unix sockets. Behind a page of facts come lines
// by channel and member, through which members meet, and an arena per member,
// from which only that member allocates. Thread-safe.

#ifndef BERTH_RPC_EXCHANGE_SEGMENT_H_
#define BERTH_RPC_EXCHANGE_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "rpc/exchange/call.h"
#include "rpc/exchange/exchange_options.h"

namespace berth::exchange {

// What a member says of the call that it is in. Offsets are of its arena; -1:
// not there.
struct Offer {
  Call call;
  int64_t small = -1;  // inputs of small calls
  int64_t stage = -1;  // windows for what lies elsewhere
  int64_t table = -1;  // of `pieces` Pieces
  int64_t pieces = 0;
  int64_t out = -1;
};

// An input of a member.
struct Piece {
  int32_t first = 0, count = 0;  // slices, of ordered sums
  int64_t at = -1;               // offset; -1: staged
};

// A member on a channel. `phase` counts meetings in its lower bits.
struct Line {
  alignas(64) std::atomic<uint32_t> phase{0};
  std::atomic<uint32_t> sleepers{0};
  // Of even and odd calls: a member may be a call ahead of one that reads.
  alignas(64) Offer offers[2];
};

inline constexpr uint32_t kEndedBit = 0x80000000u;

class Segment {
 public:
  static constexpr int kChannels = 64;

  // Throws errors::ResourceExhausted.
  static std::shared_ptr<Segment> create(int members, uint64_t generation,
                                         int64_t arena_bytes);
  // Takes the file. Throws errors::Unavailable for one that is no segment of
  // this generation.
  static std::shared_ptr<Segment> attach(Socket file, int member, int members,
                                         uint64_t generation);
  ~Segment();

  int fd() const { return file_.fd(); }
  int members() const { return members_; }
  int member() const { return member_; }
  // The number of a channel, the same for all members. Throws
  // errors::ResourceExhausted when there are too many.
  int channel(const std::string& name);
  Line& line(int channel, int member);
  // `bytes` of a member's arena; null when they are not inside.
  std::byte* at(int member, int64_t offset, int64_t bytes) const;
  // Where in the own arena they lie; -1 when they do not.
  int64_t offset_of(const void* data, int64_t bytes) const;
  // Zero bytes of the own arena, on pages of their own; -1 when it is full.
  int64_t allocate(int64_t bytes);
  void free(int64_t offset);
  // Whoever waits on a line wakes, now and for ever.
  void end();
  // Whether each member may have a core of its own; once all have attached.
  bool has_cores() const;

 private:
  Segment(Socket file, int member, int members, int64_t arena_bytes);
  void map();
  void say_cores();

  const Socket file_;
  const int member_, members_;
  const int64_t arena_bytes_;
  std::byte* base_ = nullptr;
  std::mutex mutex_;
  std::map<int64_t, int64_t> free_;  // offset to bytes
  std::map<int64_t, int64_t> used_;
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_SEGMENT_H_
