// replay_runner: runs of a plan whose kernels a GPU's queue can record.
//
// The first runs are the engine's, step by step: code is loaded, memory
// allocated. Then each piece of the program (replay_pieces.h) is recorded, once
// for each instance of the plan, and from there on appended as one. A recording
// has the addresses that it was made with: arguments and results that turn out
// to lie elsewhere get memory of their own in it, and are copied there and from
// there in every run; when an arena has moved, the piece is recorded again.
// What cannot be recorded goes on step by step, and the plan's text says why.

#ifndef BERTH_BACKENDS_GPU_REPLAY_H_
#define BERTH_BACKENDS_GPU_REPLAY_H_

#include <memory>

#include "program/runner.h"

namespace berth::gpu {

// A RunnerFactory: takes programs with a piece to record.
std::unique_ptr<PlanRunner> replay_runner(
    const Program& program, std::unique_ptr<PlanRunner>& standard);

// Registers it, once.
void register_replays();

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_REPLAY_H_
