// One try of a download by libcurl, which this file alone speaks to. Acts at
// once on the calling thread; thread-safe.

#ifndef BERTH_FETCH_TRANSFER_H_
#define BERTH_FETCH_TRANSFER_H_

#include "io/network.h"

namespace berth::fetch {

// io::Network::transfer.
io::TryResult transfer(io::Receiver& to,
                       io::PartFile::Clock::time_point deadline);

}  // namespace berth::fetch

#endif  // BERTH_FETCH_TRANSFER_H_
