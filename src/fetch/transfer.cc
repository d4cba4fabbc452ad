#include "fetch/transfer.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>

namespace berth::fetch {
namespace {

using io::DownloadOptions;
using io::PartFile;
using io::Receiver;
using io::TryResult;

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
};

int64_t ms_until(Clock::time_point time) {
  return std::chrono::ceil<milliseconds>(time - Clock::now()).count();
}

class Transfer {
 public:
  Transfer(Receiver& to, Clock::time_point deadline)
      : to_(to), options_(to.options()), deadline_(deadline) {
    easy_.reset(curl_easy_init());
    multi_ = curl_multi_init();
    if (easy_ == nullptr || multi_ == nullptr) {
      throw errors::ResourceExhausted("no memory for libcurl");
    }
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
    active_ = Clock::now();
    while (!step(&code)) {
      to_.progress(length(), response());
      if (Clock::now() >= deadline_) return to_.out_of_time();
      const Clock::time_point stall =
          active_ + milliseconds(options_.stall_timeout_ms);
      if (Clock::now() >= stall) return to_.stalled();
      const int64_t wait = std::min(ms_until(deadline_), ms_until(stall));
      curl_multi_poll(multi_, nullptr, 0,
                      static_cast<int>(std::clamp<int64_t>(wait, 1, 1000)),
                      nullptr);
    }
    if (thrown_) std::rethrow_exception(thrown_);
    // That it was ended is not a fault of the connection.
    return code == CURLE_OK || ended_ ? to_.end(response()) : judge(code);
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
    if (to_.from() > 0) {
      set(CURLOPT_RANGE, fmt::format("{}-", to_.from()).c_str());
    }
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

  bool body(std::span<const uint8_t> bytes) {
    active_ = Clock::now();
    const bool more =
        (to_.began() || to_.begin(response(), content_range_start())) &&
        to_.body(bytes);
    ended_ = !more;
    return more;
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

  int64_t length() const {
    curl_off_t length = -1;
    curl_easy_getinfo(easy_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    return length;
  }

  TryResult judge(CURLcode code) const {
    TryResult result;
    result.what = message_[0] != 0 ? message_ : curl_easy_strerror(code);
    result.retry = true;
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT:
        result.code = Code::kDeadlineExceeded;
        result.what += "; check the network, or raise the timeout";
        break;
      case CURLE_PARTIAL_FILE:
        return to_.ended_early(result.what);
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

  Receiver& to_;
  const DownloadOptions& options_;
  Clock::time_point deadline_;
  Clock::time_point active_;  // when the last byte came
  std::unique_ptr<CURL, FreeCurl> easy_;
  CURLM* multi_ = nullptr;
  bool ended_ = false;  // by the receiver
  std::exception_ptr thrown_;
  char message_[CURL_ERROR_SIZE] = {};
};

}  // namespace

TryResult transfer(Receiver& to, Clock::time_point deadline) {
  start_curl_once();
  return Transfer(to, deadline).run();
}

}  // namespace berth::fetch
