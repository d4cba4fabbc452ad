// Peers: the ranks of an exchange by number, sockets to them, and the common
// end of a call that cannot finish.
//
// All waits go through a Wait, which knows the deadline, reports the awaited
// rank, and notices the end of the generation. Thread-safe; a Wait belongs to
// one thread.

#ifndef BERTH_RPC_EXCHANGE_PEERS_H_
#define BERTH_RPC_EXCHANGE_PEERS_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpc/call_log.h"
#include "rpc/exchange/call.h"
#include "rpc/exchange/exchange_options.h"

namespace berth::exchange {

// A rank's position on a channel, as reported to others.
struct Standing {
  uint64_t sequence = 0;   // of the last call that it began
  int32_t waits_for = -1;  // the awaited rank; -1: none
  bool inside = false;     // still in that call
};

struct ChannelState {
  std::string name;
  std::atomic<uint64_t> sequence{0};
  std::atomic<int32_t> waits_for{-1};
  std::atomic<bool> inside{false};
};

class Wait;

class Peers {
 public:
  Peers(Link& link, ExchangeOptions options);
  ~Peers();
  // From here on the link makes no callbacks.
  void detach();

  Link& link() { return link_; }
  const ExchangeOptions& options() const { return options_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(tasks_.size()); }
  // Ranks by host, in order; the first rank of each host leads.
  const std::vector<std::vector<int>>& hosts() const { return hosts_; }
  int host() const { return host_; }
  std::string name(int rank) const { return link_.name_of(tasks_[rank]); }
  const TaskId& task(int rank) const { return tasks_[rank]; }

  // The state that others may query; lives as long as this object.
  ChannelState& channel(const std::string& name);

  // Sockets of a channel between two ranks: the lower one dials, the higher one
  // looks for it (empty: not there yet).
  Socket dial_channel(int rank, Wait& wait);
  Socket find_channel(int rank, const std::string& channel);
  // Dials the rank for a memory file.
  Socket dial_memory(int rank, Deadline deadline);
  // Called when a rank dials the leader of a host for memory; must not block.
  void serve_memory(std::function<void(Socket, int rank)> fn);

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Readable once the generation has ended.
  int end_fd() const { return end_fd_.fd(); }
  void on_end(std::function<void()> fn);

  // Each ends the generation and throws the common failure.
  [[noreturn]] void differ(int a, const ExchangeCall& call_a, int b,
                           const ExchangeCall& call_b,
                           const std::string& channel);
  [[noreturn]] void invalid(const std::string& cause, const ExchangeCall& call);
  [[noreturn]] void lost(int rank, const std::string& cause,
                         const ExchangeCall& call);
  [[noreturn]] void late(int rank, const ExchangeCall& call,
                         const ChannelState& channel, double waited);
  [[noreturn]] void raise_end();

 private:
  struct Shared;
  void arrived(Accepted accepted);
  [[noreturn]] void wait_for_failure(const std::string& cause);
  std::optional<Standing> ask(int rank, const std::string& channel);

  Link& link_;
  const ExchangeOptions options_;
  const std::vector<TaskId> tasks_;
  int rank_ = 0, host_ = 0;
  std::vector<std::vector<int>> hosts_;
  std::atomic<bool> ended_{false};
  Socket end_fd_;
  std::shared_ptr<Shared> shared_;  // outlives this, for the link's callback
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, Socket> inbox_;
  std::map<std::string, std::unique_ptr<ChannelState>> channels_;
  std::function<void(Socket, int)> memory_;
  std::vector<std::pair<Socket, int>> memory_waiting_;
  std::vector<std::function<void()>> ends_;
};

// One call of one thread while it waits.
class Wait {
 public:
  Wait(Peers& peers, ChannelState& channel, const ExchangeCall& call,
       double seconds);
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() {
    count_wait(Clock::now());
    channel_.inside.store(false, std::memory_order_relaxed);
    rpc::CallLog::get().end(logged_);
  }
  Peers& peers() { return peers_; }
  ChannelState& channel() { return channel_; }
  const ExchangeCall& call() const { return call_; }
  Deadline deadline() const { return deadline_; }
  // Call it now and then while waiting for `rank`: throws if the generation has
  // ended or the deadline has passed; warns when it is time.
  void check(int rank);
  // The longest sleep until the next check(), in milliseconds.
  int slice_ms() const;
  void done_waiting() {
    if (waits_for_ >= 0) count_wait(Clock::now());
    channel_.waits_for.store(-1, std::memory_order_relaxed);
  }

 private:
  // The wait since `since_`, for what others may ask of this process.
  void count_wait(Deadline now);

  Peers& peers_;
  ChannelState& channel_;
  const ExchangeCall call_;
  const uint64_t logged_;
  const Deadline begin_, deadline_;
  Deadline warn_at_, since_;
  int waits_for_ = -1;
};

}  // namespace berth::exchange

#endif  // BERTH_RPC_EXCHANGE_PEERS_H_
