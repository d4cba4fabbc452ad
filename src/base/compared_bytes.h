// compared_bytes: two numbers of bytes that a message compares. Pure.

#ifndef BERTH_BASE_COMPARED_BYTES_H_
#define BERTH_BASE_COMPARED_BYTES_H_

#include <cstdint>
#include <string>
#include <utility>

namespace berth {

// Returns both as bytes_text() does, but in B when they differ and would
// otherwise read alike.
std::pair<std::string, std::string> compared_bytes(int64_t a, int64_t b);

}  // namespace berth

#endif  // BERTH_BASE_COMPARED_BYTES_H_
