// Functions whose traces meet other tasks: one that was traced before the tasks
// changed is traced again, since it waits for some that are gone.

#ifndef BERTH_FUNCTION_TASK_CHANGES_H_
#define BERTH_FUNCTION_TASK_CHANGES_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace berth {

// How often the tasks of this process's cluster have changed.
inline std::atomic<uint64_t> g_task_changes{0};

// What the trace of a function finds out. One thread.
class MeetsTasks {
 public:
  MeetsTasks() : outer_(std::exchange(t_open_, this)) {}
  ~MeetsTasks() {
    t_open_ = outer_;
    if (found_) note();
  }
  MeetsTasks(const MeetsTasks&) = delete;
  MeetsTasks& operator=(const MeetsTasks&) = delete;

  // What is traced now meets other tasks.
  static void note() {
    if (t_open_ != nullptr) t_open_->found_ = true;
  }
  bool found() const { return found_; }

 private:
  static inline thread_local MeetsTasks* t_open_ = nullptr;
  MeetsTasks* const outer_;
  bool found_ = false;
};

}  // namespace berth

#endif  // BERTH_FUNCTION_TASK_CHANGES_H_
