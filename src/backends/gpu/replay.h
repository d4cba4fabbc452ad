// replay_runner: runs plans whose kernels a GPU's queue can record.
//
// The engine makes the first runs step by step: code is loaded, memory
// allocated. Then each piece of the program (replay_pieces.h) is recorded once
// per instance of the plan, and from then on appended as one. A recording has
// fixed addresses. Arguments and results that turn out to move get memory in
// the recording, with copies to and from it in every run; when an arena has
// moved, the piece is recorded again. What cannot be recorded goes on step by
// step, and the plan's text says why.

#ifndef BERTH_BACKENDS_GPU_REPLAY_H_
#define BERTH_BACKENDS_GPU_REPLAY_H_

#include <memory>

#include "program/runner.h"

namespace berth::gpu {

// A RunnerFactory: accepts programs with a piece to record. It sees every new
// plan, so it also makes the plan's cards compile what waits.
std::unique_ptr<PlanRunner> replay_runner(
    const Program& program, std::unique_ptr<PlanRunner>& standard);

// Registers it, once.
void register_replays();

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_REPLAY_H_
