// Network: what io asks of the world outside: bytes of a URL, and digests.
//
// libberth.so has neither: the first use opens the plug-in libberth_fetch.so
// (libcurl, OpenSSL), in the folder `berth` beside it. A binding of another
// language can put its own in place before that. Thread-safe.

#ifndef BERTH_IO_NETWORK_H_
#define BERTH_IO_NETWORK_H_

#include <memory>
#include <string>

#include "io/byte_source.h"
#include "io/receiver.h"

namespace berth::io {

class Network {
 public:
  using Clock = PartFile::Clock;
  virtual ~Network() = default;

  // Makes one try: asks for the URL of `to.options()` from byte `to.from()` on
  // and hands what comes to `to`. Ends by `deadline`. Reports faults of the
  // network in the result; throws what `to` throws.
  virtual TryResult transfer(Receiver& to, Clock::time_point deadline) = 0;

  // Returns the digest of the rest of `source` as lower-case hex digits.
  // `algorithm`: "sha256" or "md5". Throws what `source` throws, and Internal
  // where there is no such digest.
  virtual std::string digest(const char* algorithm, ByteSource& source) = 0;
};

// Returns the one in use. Throws FailedPrecondition when the plug-in cannot be
// opened.
Network& network();

// Uses `mine` from now on, until the process ends.
void set_network(std::unique_ptr<Network> mine);

// The export `berth_fetch_plugin` of libberth_fetch.so.
struct FetchPlugin {
  const char* build_id;
  Network* (*make)();  // owned by the caller
};

}  // namespace berth::io

#endif  // BERTH_IO_NETWORK_H_
