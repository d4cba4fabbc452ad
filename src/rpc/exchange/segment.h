// Segment: the memory file that the tasks of one host map.
//
// The leader creates it with a fixed, sealed size and sends its descriptor to
// the others over authenticated Unix sockets. After a header page come the
// lines by channel and member, through which members meet, and one arena per
// member, from which only that member allocates. Thread-safe.

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

// A member's current call. Offsets are in its arena; -1: absent.
struct Offer {
  ExchangeCall call;
  int64_t small = -1;  // inputs of small calls
  int64_t stage = -1;  // windows for data outside the segment
  int64_t table = -1;  // of `pieces` Pieces
  int64_t pieces = 0;
  int64_t out = -1;
};

// An input of a member.
struct OfferedInput {
  int32_t first = 0, count = 0;  // slices, of ordered sums
  int64_t at = -1;               // offset; -1: staged
};

// A member on a channel. `phase` counts meetings in its lower bits.
struct Line {
  alignas(64) std::atomic<uint32_t> phase{0};
  std::atomic<uint32_t> sleepers{0};
  // For even and odd calls: a member may be one call ahead of its readers.
  alignas(64) Offer offers[2];
};

inline constexpr uint32_t kEndedBit = 0x80000000u;

class Segment {
 public:
  static constexpr int kChannels = 64;

  // Throws errors::ResourceExhausted.
  static std::shared_ptr<Segment> create(int members, uint64_t generation,
                                         int64_t arena_bytes);
  // Takes ownership of the file. Throws errors::Unavailable if it is not a
  // segment of this generation.
  static std::shared_ptr<Segment> attach(Socket file, int member, int members,
                                         uint64_t generation);
  ~Segment();

  int fd() const { return file_.fd(); }
  int members() const { return members_; }
  int member() const { return member_; }
  // The number of a channel, the same for all members. Throws
  // errors::ResourceExhausted if there are too many.
  int channel(const std::string& name);
  Line& line(int channel, int member);
  // `bytes` of a member's arena; null if they exceed it.
  std::byte* at(int member, int64_t offset, int64_t bytes) const;
  // Their offset in the own arena; -1 if they are outside.
  int64_t offset_of(const void* data, int64_t bytes) const;
  // Zeroed bytes of the own arena, on separate pages; -1 if it is full.
  int64_t allocate(int64_t bytes);
  void free(int64_t offset);
  // Wakes all threads that wait on a line, now and later.
  void end();
  // Whether each member may have its own core; valid once all have attached.
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
