// Receiver: judges what a server sends in one try of a download, and stores it.
//
// A Network, which speaks HTTP, tells the receiver the status, hands it the
// body piece by piece and stops when told so; nothing here knows a library for
// HTTP. One thread per object.

#ifndef BERTH_IO_RECEIVER_H_
#define BERTH_IO_RECEIVER_H_

#include <cstdint>
#include <span>
#include <string>

#include "berth/errors.h"
#include "io/download.h"
#include "io/part_file.h"

namespace berth::io {

// How a try ended. `what` says the fault and the remedy, without the URL.
struct TryResult {
  bool ok = false;
  bool retry = false;  // another try may succeed
  bool clear = false;  // the part's bytes are of no use
  errors::Code code = errors::Code::kUnavailable;
  std::string what;
  int64_t resumed_from = 0;  // bytes of the part that were kept
};

class Receiver {
 public:
  Receiver(const DownloadOptions& options, PartFile& part)
      : options_(options), part_(part), from_(part.size()) {}

  const DownloadOptions& options() const { return options_; }
  // The first byte to ask for (Range); 0: all.
  int64_t from() const { return from_; }

  // Takes the answer's status (0: not HTTP) and the first byte that its
  // Content-Range names (-1: none), before the first piece of the body.
  // Returns false when the try is to end.
  bool begin(long status, int64_t range_start);
  bool began() const { return began_; }

  // Stores a piece of the body; false ends the try. Throws what the part
  // throws.
  bool body(std::span<const uint8_t> bytes);

  // Reports progress when there are new bytes; `length`: of the body, -1:
  // unknown. Throws what the callback throws.
  void progress(int64_t length, long status);

  // How the try ended: after the whole body (or a fault found above), and
  // after what the network did.
  TryResult end(long status);
  TryResult stalled() const;
  TryResult out_of_time() const;
  TryResult ended_early(const std::string& what) const;

 private:
  bool fault(TryResult result);

  const DownloadOptions& options_;
  PartFile& part_;
  int64_t from_;
  int64_t reported_ = -1;
  bool began_ = false;
  bool failed_ = false;
  TryResult fault_;
};

}  // namespace berth::io

#endif  // BERTH_IO_RECEIVER_H_
