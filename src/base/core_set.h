// CoreSet: a set of logical CPU cores by operating-system number.
//
// Devices own core sets; pools bind their workers to them. A CoreSet is a
// sorted value without duplicates; all functions are thread-safe.

#ifndef BERTH_BASE_CORE_SET_H_
#define BERTH_BASE_CORE_SET_H_

#include <sched.h>

#include <string>
#include <string_view>
#include <vector>

namespace berth {

class CoreSet {
 public:
  CoreSet() = default;
  // Sorts and removes duplicates. Throws InvalidArgument for a negative core
  // or one above kMaxCore.
  explicit CoreSet(std::vector<int> cores);

  // Parses "0-3,6". Throws InvalidArgument naming the bad piece; the empty
  // string is the empty set.
  static CoreSet parse(std::string_view text);

  // Returns the cores this process may use: its affinity mask, cut to the CPU
  // quota of its control group (rounded down, at least one). Where a quota
  // cuts, cores on distinct physical cores are kept first.
  static CoreSet allowed();

  const std::vector<int>& cores() const { return cores_; }
  int size() const { return static_cast<int>(cores_.size()); }
  bool empty() const { return cores_.empty(); }
  int operator[](int i) const { return cores_[i]; }
  bool contains(int core) const;
  bool contains(const CoreSet& other) const;
  bool overlaps(const CoreSet& other) const;
  bool operator==(const CoreSet&) const = default;

  // Prints "0-3,6"; the empty set prints "".
  std::string str() const;

  // Cuts into n disjoint sets whose sizes differ by at most one, neighbours
  // in the machine's topology together. Throws InvalidArgument when n < 1 or
  // n > size().
  std::vector<CoreSet> split(int n) const;

  static constexpr int kMaxCore = 65535;

 private:
  std::vector<int> cores_;
};

// Returns the CPU quota in cores of the control group `path` (as printed in
// /proc/self/cgroup) and its ancestors, the smallest of them; 0 when there is
// none. `root` is the mount point; both cgroup versions are read.
double cgroup_quota_cores(const std::string& root, const std::string& path);

// Binds the calling thread to `cores`; returns false when the system refuses
// (the thread then keeps its mask). The empty set is refused.
bool bind_current_thread(const CoreSet& cores);

// Returns the affinity mask of the calling thread.
CoreSet current_thread_cores();

// True when the calling thread can run on no core but those of `cores`.
// Allocates nothing.
bool current_thread_within(const CoreSet& cores);

// While it lives, the calling thread runs on one core alone, if it may run
// there. Allocates nothing.
class CoreGuard {
 public:
  explicit CoreGuard(int core);
  ~CoreGuard();
  CoreGuard(const CoreGuard&) = delete;
  CoreGuard& operator=(const CoreGuard&) = delete;
  // Whether the thread is there.
  bool holds() const { return holds_; }

 private:
  bool holds_ = false;
  cpu_set_t before_[64];
};

}  // namespace berth

#endif  // BERTH_BASE_CORE_SET_H_
