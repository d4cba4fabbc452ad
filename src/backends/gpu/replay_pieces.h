// Pieces: how a program is split into parts to replay and other parts.
//
// A piece is a list of steps of one stream that are launched together. Steps
// that a GPU's queue can record form pieces as long as the waits of the program
// allow; every other step is a piece by itself. Pieces are in launch order:
// none waits for a later one. Made once per program; immutable.

#ifndef BERTH_BACKENDS_GPU_REPLAY_PIECES_H_
#define BERTH_BACKENDS_GPU_REPLAY_PIECES_H_

#include <string>
#include <vector>

#include "backends/gpu/queue_stream.h"
#include "program/program.h"

namespace berth::gpu {

// An argument or a result of the plan that a piece uses; its address differs in
// every run.
struct MovingBuffer {
  int buffer = -1;
  int view = -1;           // any of them, for the address
  std::vector<int> views;  // of the piece
  // A copy must be filled before the piece, or written back after it.
  bool comes_in = false, goes_out = false;
  // Others may use it at the same time, so a copy cannot replace it.
  bool shared = false;
};

struct ReplayPiece {
  int stream = -1;
  std::vector<int32_t> steps;
  QueueStream* recorded = nullptr;  // null: not recorded, for the reason
  std::string why;
  // For a recorded piece:
  std::vector<int32_t> waits;    // steps of other pieces
  std::vector<int32_t> signals;  // steps of this piece that others wait for
  std::vector<MovingBuffer> moving;
  size_t calls = 0;  // of kernels
  std::vector<const BoundKernel*> kernels;
  std::string what;  // names the piece in errors
};

std::vector<ReplayPiece> pieces_of(const Program& program);

// "0-4,7"
std::string step_ranges(const std::vector<int32_t>& steps);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_REPLAY_PIECES_H_
