// What an arena is for, as text for the error of a device without memory.
// Pure; internal to the module.

#ifndef BERTH_EXEC_ARENA_TEXT_H_
#define BERTH_EXEC_ARENA_TEXT_H_

#include <string>
#include <vector>

#include "device/holders.h"
#include "program/program.h"

namespace berth {

// Returns "plan 'train': dense/MatMul 12 MiB, Relu 3 MiB, 2 more": what lives
// in the arena of a device (a number of the program's) when most is needed, by
// the op that writes it, the largest first.
std::string arena_text(const Program& program, int device);
// Returns all of that as parts of the arena, with the lines of the ops.
std::vector<HolderPart> arena_parts(const Program& program, int device);

}  // namespace berth

#endif  // BERTH_EXEC_ARENA_TEXT_H_
