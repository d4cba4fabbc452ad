// URLs that a download takes.

#ifndef BERTH_IO_URL_H_
#define BERTH_IO_URL_H_

#include <string>

namespace berth::io {

// Throws InvalidArgument unless `url` is http, https, or file naming a
// regular file (others could block); NotFound when that file does not exist.
void check_url(const std::string& url);

}  // namespace berth::io

#endif  // BERTH_IO_URL_H_
