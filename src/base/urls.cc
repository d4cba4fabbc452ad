#include "base/urls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/immortal.h"

namespace berth {

namespace {

UrlHooks& url_hooks() {
  static auto& hooks = immortal<UrlHooks>();
  return hooks;
}

}  // namespace

bool is_url(std::string_view path) {
  const size_t end = path.find("://");
  if (end == std::string_view::npos || end < 2) return false;
  return std::all_of(path.begin(), path.begin() + static_cast<int64_t>(end),
                     [](unsigned char c) {
                       return std::isalnum(c) || c == '+' || c == '-' ||
                              c == '.';
                     });
}

void refuse_url(const std::string& path, const std::string& subject) {
  if (!is_url(path)) return;
  throw errors::InvalidArgument(fmt::format(
      "{}{}\"{}\" is a URL; C++ reads and writes mounted paths: mount the "
      "bucket (s3fs, gcsfuse, blobfuse2) and give the path there, or use the "
      "names of Python that take URLs (docs/files.md)",
      subject, subject.empty() ? "" : ": ", path));
}

void set_url_hooks(UrlHooks hooks) { url_hooks() = std::move(hooks); }

std::string local_file(const std::string& path) {
  if (!is_url(path)) return path;
  if (!url_hooks().fetch) refuse_url(path, "");
  return url_hooks().fetch(path);
}

void settle_urls() {
  if (url_hooks().settle) url_hooks().settle();
}

}  // namespace berth
