#include "io/transfer.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>

namespace berth::io {
namespace {

using Clock = PartFile::Clock;
using errors::Code;
using std::chrono::milliseconds;

constexpr long kMaxRedirects = 5;

void start_curl_once() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

struct FreeCurl {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(char* text) const { curl_free(text); }
};

int64_t ms_until(Clock::time_point time) {
  return std::chrono::ceil<milliseconds>(time - Clock::now()).count();
}

class Transfer {
 public:
  Transfer(const DownloadOptions& options, PartFile& part,
           Clock::time_point deadline)
      : options_(options), part_(part), deadline_(deadline) {
    easy_.reset(curl_easy_init());
    multi_ = curl_multi_init();
    if (easy_ == nullptr || multi_ == nullptr) {
      throw errors::ResourceExhausted("no memory for libcurl");
    }
    from_ = part.size();
    set_up();
    curl_multi_add_handle(multi_, easy_.get());
  }
  ~Transfer() {
    if (multi_ == nullptr) return;
    curl_multi_remove_handle(multi_, easy_.get());
    easy_.reset();
    curl_multi_cleanup(multi_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  TryResult run() {
    CURLcode code = CURLE_OK;
    int64_t reported = -1;
    active_ = Clock::now();
    while (!step(&code)) {
      if (options_.progress && part_.size() != reported) {
        reported = part_.size();
        options_.progress(reported, total());
      }
      if (TryResult late; too_late(&late)) return late;
      const int64_t stall =
          ms_until(active_ + milliseconds(options_.stall_timeout_ms));
      const int64_t wait = std::min(ms_until(deadline_), stall);
      curl_multi_poll(multi_, nullptr, 0,
                      static_cast<int>(std::clamp<int64_t>(wait, 1, 1000)),
                      nullptr);
    }
    if (thrown_) std::rethrow_exception(thrown_);
    if (failed_) return fault_;
    return judge(code);
  }

 private:
  template <typename T>
  void set(CURLoption option, T value) {
    if (curl_easy_setopt(easy_.get(), option, value) != CURLE_OK) {
      throw errors::Internal(fmt::format(
          "libcurl refuses option {}; expected version 7.85 or newer",
          static_cast<int>(option)));
    }
  }

  void set_up() {
    const bool encrypted = options_.url.starts_with("https:");
    set(CURLOPT_URL, options_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https,file");
    set(CURLOPT_REDIR_PROTOCOLS_STR, encrypted ? "https" : "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMaxRedirects);
    set(CURLOPT_NOSIGNAL, 1L);
    // Without it a lookup that hangs would hold up the clean-up as well.
    set(CURLOPT_QUICK_EXIT, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(std::clamp<int64_t>(
            std::min(options_.connect_timeout_ms, ms_until(deadline_)), 1,
            3'600'000)));
    set(CURLOPT_USERAGENT, "berth");
    set(CURLOPT_ERRORBUFFER, message_);
    set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(this));
    set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(this));
    // Not CURLOPT_RESUME_FROM: that fails where a server ignores Range.
    if (from_ > 0) set(CURLOPT_RANGE, fmt::format("{}-", from_).c_str());
  }

  // Moves bytes; returns true when the transfer is over.
  bool step(CURLcode* code) {
    int running = 0;
    curl_multi_perform(multi_, &running);
    curl_off_t connected = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &connected);
    // Until then the connect timeout rules.
    if (connected == 0) active_ = Clock::now();
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      *code = message->data.result;
      return true;
    }
    return running == 0;
  }

  bool too_late(TryResult* result) {
    result->code = Code::kDeadlineExceeded;
    if (Clock::now() >= deadline_) {
      result->what = fmt::format(
          "not finished within {} ms, {} bytes are there; try again to resume",
          options_.total_timeout_ms, part_.size());
      return true;
    }
    if (Clock::now() - active_ < milliseconds(options_.stall_timeout_ms)) {
      return false;
    }
    result->retry = true;
    result->what = fmt::format(
        "the server sent nothing for {} ms after {} bytes; try again later",
        options_.stall_timeout_ms, part_.size());
    return true;
  }

  static size_t on_header(char*, size_t, size_t count, void* self) {
    static_cast<Transfer*>(self)->active_ = Clock::now();
    return count;
  }

  // No exception may cross libcurl's frames: it is kept and thrown by run().
  static size_t on_body(char* data, size_t, size_t count, void* self) {
    auto* me = static_cast<Transfer*>(self);
    try {
      return me->body({reinterpret_cast<const uint8_t*>(data), count}) ? count
                                                                       : 0;
    } catch (...) {
      me->thrown_ = std::current_exception();
      return 0;
    }
  }

  // Stores a piece of the body; false ends the transfer.
  bool body(std::span<const uint8_t> bytes) {
    active_ = Clock::now();
    if (!began_ && !begin_body()) return bytes.empty();
    const int64_t limit = options_.expected_bytes >= 0 ? options_.expected_bytes
                                                       : options_.max_bytes;
    const int64_t size = part_.size() + static_cast<int64_t>(bytes.size());
    if (size > limit) {
      return fault({.retry = true,
                    .clear = true,
                    .code = Code::kDataLoss,
                    .what = fmt::format(
                        "the server sends more than the expected {} bytes; "
                        "the file there is another one, choose another server",
                        limit)});
    }
    part_.append(bytes);
    return true;
  }

  // Looks at the status before the first byte is stored.
  bool begin_body() {
    const long status = response();
    if (status >= 400) return fault(judge_status(status));
    if (from_ > 0 && status == 200) {
      part_.clear();  // the server ignored Range and starts anew
      from_ = 0;
    } else if (status == 206 && content_range_start() != from_) {
      return fault({.retry = true,
                    .clear = true,
                    .code = Code::kDataLoss,
                    .what = fmt::format("the server answered the range from "
                                        "byte {} with one from byte {}",
                                        from_, content_range_start())});
    }
    began_ = true;
    return true;
  }

  bool fault(TryResult result) {
    failed_ = true;
    fault_ = std::move(result);
    return false;
  }

  long response() const {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  // Returns where the body starts in the file; -1: the server does not say.
  int64_t content_range_start() const {
    curl_header* header = nullptr;
    int64_t start = -1;
    if (curl_easy_header(easy_.get(), "Content-Range", 0, CURLH_HEADER, -1,
                         &header) == CURLHE_OK &&
        std::sscanf(header->value, "bytes %" SCNd64 "-", &start) == 1) {
      return start;
    }
    return -1;
  }

  int64_t total() const {
    if (options_.expected_bytes >= 0) return options_.expected_bytes;
    curl_off_t length = -1;
    curl_easy_getinfo(easy_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length < 0) return -1;
    return length + (response() == 206 ? from_ : 0);
  }

  static TryResult judge_status(long status) {
    TryResult result;
    result.what = fmt::format("the server answered HTTP {}", status);
    if (status == 404 || status == 410) {
      result.code = Code::kNotFound;
      result.what += " (not found); check the URL";
    } else if (status == 401 || status == 403) {
      result.code = Code::kPermissionDenied;
      result.what += " (not allowed); check the URL, or a proxy in between";
    } else if (status == 416) {
      result.retry = result.clear = true;
      result.code = Code::kDataLoss;
      result.what += " (no such range): the part there is too long";
    } else {
      result.retry = status >= 500 || status == 408 || status == 429;
      result.what += "; expected 200 or 206; try again later";
    }
    return result;
  }

  TryResult judge(CURLcode code) const {
    const long status = response();
    if (code == CURLE_OK) {
      if (status >= 300) return judge_status(status);
      return {.ok = true, .resumed_from = from_};
    }
    TryResult result;
    result.what = message_[0] != 0 ? message_ : curl_easy_strerror(code);
    result.retry = true;
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT:
        result.code = Code::kDeadlineExceeded;
        result.what += "; check the network, or raise the timeout";
        break;
      case CURLE_PARTIAL_FILE:
        result.code = Code::kDataLoss;
        result.what += fmt::format(
            ": the connection ended early, {} bytes are there; try again",
            part_.size());
        break;
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_TOO_MANY_REDIRECTS:
        result.retry = false;
        result.what += "; check where the URL redirects to";
        break;
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
        result.retry = false;  // it would fail in the same way
        [[fallthrough]];
      default:
        result.what += "; check the network connection and the URL";
    }
    return result;
  }

  const DownloadOptions& options_;
  PartFile& part_;
  Clock::time_point deadline_;
  Clock::time_point active_;  // when the last byte came
  std::unique_ptr<CURL, FreeCurl> easy_;
  CURLM* multi_ = nullptr;
  int64_t from_ = 0;
  bool began_ = false;
  bool failed_ = false;
  TryResult fault_;
  std::exception_ptr thrown_;
  char message_[CURL_ERROR_SIZE] = {};
};

// Returns a part of a URL, or "" where it has none.
std::string url_part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, CURLU_URLDECODE) != CURLUE_OK) return "";
  return std::unique_ptr<char, FreeCurl>(text).get();
}

}  // namespace

void check_url(const std::string& url) {
  start_curl_once();
  const std::unique_ptr<CURLU, FreeCurl> parsed(curl_url());
  const bool whole = parsed && url.find('\0') == std::string::npos &&
                     curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(),
                                  CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
  const std::string scheme =
      whole ? url_part(parsed.get(), CURLUPART_SCHEME) : "";
  if (scheme != "http" && scheme != "https" && scheme != "file") {
    throw errors::InvalidArgument(
        fmt::format("cannot download \"{}\"; expected a URL that starts with "
                    "https://, http:// or file://",
                    url));
  }
  if (scheme != "file") return;
  const std::string path = url_part(parsed.get(), CURLUPART_PATH);
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

TryResult transfer(const DownloadOptions& options, PartFile& part,
                   Clock::time_point deadline) {
  start_curl_once();
  return Transfer(options, part, deadline).run();
}

}  // namespace berth::io
