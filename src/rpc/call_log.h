// CallLog: the last sums and calls of this process, for what ends a cluster.
//
// A ring that is there from the start: noting a call takes a lock and allocates
// nothing. A failure writes it where BERTH_CALL_LOG says, else beside the file
// of BERTH_PROFILE, else nowhere. docs/json.md, "Calls of a task". Thread-safe.

#ifndef BERTH_RPC_CALL_LOG_H_
#define BERTH_RPC_CALL_LOG_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace berth::rpc {

class CallLog {
 public:
  static constexpr size_t kKept = 1000;

  // That of the process.
  static CallLog& get();

  // Notes that a call begins; returns what end() gets. `kind` is static; `what`
  // and `to` are cut to what there is room for.
  uint64_t begin(const char* kind, std::string_view what, std::string_view to,
                 uint64_t sequence, int64_t bytes);
  void end(uint64_t call);

  // The file's text: oldest first, one object per line after the first.
  std::string text(const std::string& task, const std::string& failure) const;
  // Writes it; returns a line that names the file, "" if none is asked for.
  std::string write(const std::string& task, const std::string& failure) const;

 private:
  struct Call {
    const char* kind = nullptr;
    std::array<char, 56> what{};
    std::array<char, 24> to{};
    uint64_t sequence = 0;
    int64_t bytes = 0;
    double begin_us = 0, end_us = -1;
  };
  mutable std::mutex mutex_;
  std::array<Call, kKept> calls_{};
  uint64_t next_ = 0;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_CALL_LOG_H_
