// NoReports: a block in which a thread reports nothing: what it compiles there
// will not run.

#ifndef BERTH_BASE_NO_REPORTS_H_
#define BERTH_BASE_NO_REPORTS_H_

namespace berth {

class NoReports {
 public:
  NoReports();
  ~NoReports();
  NoReports(const NoReports&) = delete;
  NoReports& operator=(const NoReports&) = delete;

 private:
  const bool outer_;
};

}  // namespace berth

#endif  // BERTH_BASE_NO_REPORTS_H_
