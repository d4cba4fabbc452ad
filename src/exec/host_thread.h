// The thread of /CPU:0, when programs give it work.
//
// /CPU:0 is the one device whose work others find done without an event, so
// runs that use its thread end when it has ended. Thread-safe.

#ifndef BERTH_EXEC_HOST_THREAD_H_
#define BERTH_EXEC_HOST_THREAD_H_

#include <mutex>

#include "program/program_run.h"

namespace berth {

// One run at a time gives the thread work: a failure is that run's alone, and
// is cleared before the next one starts. Taken after the variables' locks.
std::unique_lock<std::mutex> hold_host_thread();
// Waits for the work of a program with host_threads. Bodies may use the thread
// where the program around them does not. Throws the error of a step.
void join_host_thread(ProgramRun& run);
// After a failed run of such a program: the caller is told, and the thread
// works again.
void reset_host_thread(const Program& program);

}  // namespace berth

#endif  // BERTH_EXEC_HOST_THREAD_H_
