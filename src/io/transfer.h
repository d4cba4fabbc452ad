// One try of a download: from the end of the part to the end of the body.
//
// `download` decides about tries and checks the bytes; this file is the only
// one that speaks to libcurl. Acts at once on the calling thread.

#ifndef BERTH_IO_TRANSFER_H_
#define BERTH_IO_TRANSFER_H_

#include <cstdint>
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

// Throws InvalidArgument unless `url` is http, https, or file naming a
// regular file (others could block); NotFound when that file does not exist.
void check_url(const std::string& url);

// Appends the body of `options.url` to `part`, from `part.size()` on where
// the server honours Range, else anew; ends by `deadline`. Reports faults of
// the network in the result; throws what `part` or the progress callback
// throws.
TryResult transfer(const DownloadOptions& options, PartFile& part,
                   PartFile::Clock::time_point deadline);

}  // namespace berth::io

#endif  // BERTH_IO_TRANSFER_H_
