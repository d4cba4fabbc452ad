// Paths that are URLs, such as s3://bucket/run. The library reads and writes
// mounted paths alone; a language that can fetch URLs (Python) says so here,
// and readers of data then take them. Any thread.

#ifndef BERTH_BASE_URLS_H_
#define BERTH_BASE_URLS_H_

#include <functional>
#include <string>
#include <string_view>

namespace berth {

// True for "scheme://...".
bool is_url(std::string_view path);

// Throws errors::InvalidArgument for a URL, which says to mount it. `subject`
// begins the message; "": nothing does.
void refuse_url(const std::string& path, const std::string& subject);

struct UrlHooks {
  // Returns the path of a copy on this machine; throws.
  std::function<std::string(const std::string& url)> fetch;
  // Returns when what is on its way to URLs is there; throws nothing.
  std::function<void()> settle;
};
// Once, before other threads read files.
void set_url_hooks(UrlHooks hooks);

// Returns the path itself, or that of a copy of what a URL names. Throws what
// refuse_url() does where nothing fetches, and errors of the fetch.
std::string local_file(const std::string& path);

// Called before a process is ended in the middle of its work.
void settle_urls();

}  // namespace berth

#endif  // BERTH_BASE_URLS_H_
