#include "io/url.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "berth/errors.h"

namespace berth::io {

namespace {

// "%20" is a space.
std::string decoded(const std::string& text) {
  std::string s;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* at = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(at, at + 2, value, 16).ptr == at + 2) {
      s += static_cast<char>(value);
      i += 2;
    } else {
      s += text[i];
    }
  }
  return s;
}

// The path of a file URL of this machine; "" where it is none.
std::string path_of(const std::string& rest) {
  const size_t slash = rest.find('/');
  if (slash == std::string::npos) return "";
  const std::string host = rest.substr(0, slash);
  if (!host.empty() && host != "localhost" && host != "127.0.0.1") return "";
  return decoded(rest.substr(slash));
}

}  // namespace

void check_url(const std::string& url) {
  const size_t colon = std::min(url.find("://"), url.size());
  std::string scheme = url.substr(0, colon);
  std::ranges::transform(scheme, scheme.begin(),
                         [](unsigned char c) { return std::tolower(c); });
  const std::string rest = colon < url.size() ? url.substr(colon + 3) : "";
  const std::string path = scheme == "file" ? path_of(rest) : "";
  const bool has_host = !rest.empty() && rest[0] != '/';
  const bool good = scheme == "file"                        ? !path.empty()
                    : scheme == "http" || scheme == "https" ? has_host
                                                            : false;
  if (!good || url.find('\0') != std::string::npos) {
    throw errors::InvalidArgument(
        fmt::format("cannot download \"{}\"; expected a URL that starts with "
                    "https://, http:// or file://",
                    url));
  }
  if (scheme != "file") return;
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    throw errors::NotFound(
        fmt::format("cannot download \"{}\": no file at \"{}\"; check the path",
                    url, path));
  }
  if (!S_ISREG(info.st_mode)) {
    throw errors::InvalidArgument(fmt::format(
        "cannot download \"{}\": \"{}\" is not a regular file", url, path));
  }
}

}  // namespace berth::io
