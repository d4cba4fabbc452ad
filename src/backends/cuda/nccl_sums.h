// NcclSums: sums between the cards of this process.
//
// One thread calls NCCL, so that no communicator is used by two and all sums
// of the process begin in one order on every card, whoever asks; on each card
// they run on a stream of their own. Communicators do not block, are made once
// for a list of cards and kept for good. Another thread watches: a sum that
// some card has come to and that has not ended in time, that NCCL reports an
// error of, or whose card is lost fails; its communicators are aborted, which
// ends it on the others, and made anew for the next one. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_NCCL_SUMS_H_
#define BERTH_BACKENDS_CUDA_NCCL_SUMS_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/nccl_library.h"
#include "backends/cuda/nccl_round.h"

namespace berth::cuda {

class NcclSums {
 public:
  // Of the process. Nccl::find() has found the library.
  static NcclSums& get();
  explicit NcclSums(const Nccl& nccl) : nccl_(nccl) {}  // for get()

  // Hands over a round all of whose members have come. Throws
  // errors::InvalidArgument when two of them are on one card.
  void issue(const std::shared_ptr<NcclRound>& round);
  // Waits until a round that was handed over is on the streams of its cards.
  // Throws what it failed with.
  void await_issue(const NcclRound& round);

  // Seconds that a sum may take, BERTH_NCCL_TIMEOUT; 600 when it is not set.
  // Throws errors::InvalidArgument for what is no number of seconds.
  static double default_timeout_seconds();

  // For NcclEvent.
  CUevent take_event(CudaCard& card);
  void give_back(CudaCard& card, CUevent event) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  using Cards = std::vector<CudaCard*>;  // by rank
  using Round = std::shared_ptr<NcclRound>;

  // Communicators, and who may use them: their thread while it calls, whoever
  // asks for errors, until they are aborted.
  struct Team {
    Cards cards;
    std::mutex mutex;
    std::vector<NcclComm> comms;
    bool aborted = false;
  };
  // What is on the cards, for the thread that watches.
  struct Watched {
    Round round;
    std::shared_ptr<Team> team;
    bool begun = false;            // some card has come to it
    Clock::time_point since = {};  // then; when it failed
  };

  // The thread that calls NCCL (nccl_sums.cc).
  void run_issuer();
  void call_nccl(const Round& round);
  std::shared_ptr<Team> team_of(const NcclRound& round);
  void make_team(const NcclRound& round, Team& team);
  void append(const NcclRound& round, Team& team);
  // Polls until no communicator is busy with what was called.
  void await_calls(const NcclRound& round, Team& team, const char* call);
  CUstream stream_of(CudaCard& card);
  void now_calling(const Round& round);

  // The thread that watches (nccl_watch.cc).
  void run_watcher();
  // Returns false when the round need not be looked at any more.
  bool look(Watched& w);
  // Returns why it failed; "": it has not.
  std::string trouble(Watched& w, errors::Code* code);
  std::string late_text(const NcclRound& round) const;
  void look_at_issuer();

  // Both.
  void fail(NcclRound& round, errors::Code code, const std::string& why);
  // Aborts the communicators, unless they are; when not told to wait, not
  // while somebody uses them.
  void abort(const std::shared_ptr<Team>& team, bool wait = true);
  void abort_one(CudaCard& card, NcclComm comm) noexcept;
  void wait_for_aborts(const NcclRound& round);

  const Nccl& nccl_;
  std::map<CudaCard*, CUstream> streams_;  // the first thread's
  std::mutex mutex_;                       // all below
  std::condition_variable changed_;
  bool started_ = false;
  std::deque<Round> queue_;  // to be called for
  Round calling_;            // NCCL is being called for it
  Clock::time_point calling_since_;
  bool stuck_ = false;           // and does not return
  std::vector<Watched> issued_;  // since the other thread looked
  std::map<Cards, std::shared_ptr<Team>> teams_;
  int aborting_ = 0;  // communicators
  std::map<CudaCard*, std::vector<CUevent>> spare_;
};

// How long calls of NCCL may take: making communicators takes longer than a
// sum, which may have little time.
double nccl_call_seconds(const NcclRound& round);
// How long it may take to let go of what was aborted.
std::chrono::duration<double> nccl_grace(const NcclRound& round);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_SUMS_H_
