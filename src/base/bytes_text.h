// bytes_text: numbers of bytes for people. Pure.

#ifndef BERTH_BASE_BYTES_TEXT_H_
#define BERTH_BASE_BYTES_TEXT_H_

#include <cstdint>
#include <string>

namespace berth {

// Returns "4 B", "1.5 KiB", "4 MiB": at most one decimal place.
std::string bytes_text(int64_t bytes);

}  // namespace berth

#endif  // BERTH_BASE_BYTES_TEXT_H_
