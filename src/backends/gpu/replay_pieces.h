// Pieces: how a program is cut into what is replayed and what is not.
//
// A piece is a list of steps of one stream that are launched together. Steps
// that a GPU's queue can record become pieces as long as the waits of the
// program allow; every other step is a piece of its own. Pieces are in launch
// order: nobody waits for a later one. Made once per program; immutable.

#ifndef BERTH_BACKENDS_GPU_REPLAY_PIECES_H_
#define BERTH_BACKENDS_GPU_REPLAY_PIECES_H_

#include <string>
#include <vector>

#include "backends/gpu/queue_stream.h"
#include "program/program.h"

namespace berth::gpu {

// An argument or a result of the plan that a piece uses: it lies elsewhere in
// every run.
struct MovingBuffer {
  int buffer = -1;
  int view = -1;           // one of them, which tells the address
  std::vector<int> views;  // of the piece
  // A copy of it must have its bytes before the piece, or gives them back
  // behind it.
  bool comes_in = false, goes_out = false;
  // Others may be at it at the same time: no copy can stand for it.
  bool shared = false;
};

struct Piece {
  int stream = -1;
  std::vector<int32_t> steps;
  QueueStream* recorded = nullptr;  // null: not recorded, because of
  std::string why;
  // Of a recorded one:
  std::vector<int32_t> waits;    // steps of other pieces
  std::vector<int32_t> signals;  // steps of this piece that somebody waits for
  std::vector<MovingBuffer> moving;
  size_t calls = 0;  // of kernels
  std::string what;  // for errors of the piece as a whole
};

std::vector<Piece> pieces_of(const Program& program);

// "0-4,7"
std::string step_ranges(const std::vector<int32_t>& steps);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_REPLAY_PIECES_H_
