// Opening: while one lives, this thread may open shared libraries.
//
// The C library runs the ends of libraries when a process leaves, one after
// the other; a library that is opened meanwhile lets the beginnings of those
// that have ended run again, which they do not survive. So the end of this
// library, which comes before those that it needs, waits for whoever opens
// some, at most ten seconds, and nobody opens any after it. Thread-safe.

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
