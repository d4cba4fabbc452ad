// Opening: while one lives, this thread may open shared libraries.
//
// When a process leaves, the C library runs the ends of libraries, one after
// the other. A library that is opened meanwhile lets the beginnings of those
// that have ended run again, which they do not survive: locks that the opening
// thread holds are asked for once more. So exit() waits for threads that open
// libraries, at most ten seconds, before any library ends, and none is opened
// after it. Thread-safe.

#ifndef BERTH_DEVICE_OPENING_H_
#define BERTH_DEVICE_OPENING_H_

namespace berth {

class Opening {
 public:
  Opening();
  ~Opening();
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
  // False: the process is about to end; open nothing.
  explicit operator bool() const { return allowed_; }

 private:
  bool allowed_;
};

}  // namespace berth

#endif  // BERTH_DEVICE_OPENING_H_
