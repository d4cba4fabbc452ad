// PieceRun: a piece of a program, as replayed by one instance of the plan.
//
// Used only by the thread that launches the run.

#ifndef BERTH_BACKENDS_GPU_REPLAY_PIECE_H_
#define BERTH_BACKENDS_GPU_REPLAY_PIECE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/gpu/replay_pieces.h"
#include "backends/gpu/stream_recording.h"
#include "program/runner.h"

namespace berth::gpu {

class PieceRun {
 public:
  // `piece` must be one to record; all arguments must outlive this.
  PieceRun(const ReplayPiece& piece, ProgramRun& run, SteppedRun& steps);
  PieceRun(const PieceRun&) = delete;
  PieceRun& operator=(const PieceRun&) = delete;

  // Notes where the arguments and results of a run without replay are.
  void look();
  // Launches the steps by a recording, which it makes if needed, and records
  // their events. On false nothing was launched; if that is permanent, why()
  // tells the reason.
  bool launch();

  const std::string& why() const { return why_; }
  // The number of recordings so far.
  int recorded() const { return recorded_; }

 private:
  // An argument or a result.
  struct Place {
    std::byte* address = nullptr;  // in the last run
    bool moved = false;            // since an earlier run
    BlockRef home;                 // copy in the recording; null: in place
  };

  std::byte* address_of(const MovingBuffer& m) const;
  bool is_current() const;
  // Returns false with why_, or because the stream takes no work now.
  bool record();
  void give_homes();
  // Called by work of the stream.
  void make_recording();
  void append(StreamRecording& recording);
  void replay();
  void copy(const MovingBuffer& m, std::byte* to, const std::byte* from);

  const ReplayPiece& piece_;
  ProgramRun& run_;
  SteppedRun& steps_;
  std::vector<Place> places_;                // by piece_.moving
  std::vector<std::byte*> recorded_arenas_;  // by device
  std::optional<StreamRecording> recording_;
  Work recording_work_, replay_work_;
  bool made_ = false;              // set by recording_work_
  int recorded_ = 0, recent_ = 0;  // recordings; recent ones
  uint64_t runs_ = 0;
  std::string why_;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_REPLAY_PIECE_H_
