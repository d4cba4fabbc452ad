#include "io/receiver.h"

#include <fmt/format.h>

#include <utility>

namespace berth::io {

using errors::Code;

namespace {

TryResult judge_status(long status) {
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

}  // namespace

bool Receiver::begin(long status, int64_t range_start) {
  if (status >= 400) return fault(judge_status(status));
  if (from_ > 0 && status == 200) {
    part_.clear();  // the server ignored Range and starts anew
    from_ = 0;
  } else if (status == 206 && range_start != from_) {
    return fault({.retry = true,
                  .clear = true,
                  .code = Code::kDataLoss,
                  .what = fmt::format("the server answered the range from "
                                      "byte {} with one from byte {}",
                                      from_, range_start)});
  }
  began_ = true;
  return true;
}

bool Receiver::body(std::span<const uint8_t> bytes) {
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

void Receiver::progress(int64_t length, long status) {
  if (!options_.progress || part_.size() == reported_) return;
  reported_ = part_.size();
  if (length >= 0 && status == 206) length += from_;
  options_.progress(reported_, options_.expected_bytes >= 0
                                   ? options_.expected_bytes
                                   : length);
}

bool Receiver::fault(TryResult result) {
  failed_ = true;
  fault_ = std::move(result);
  return false;
}

TryResult Receiver::end(long status) {
  if (failed_) return fault_;
  if (status >= 300) return judge_status(status);
  return {.ok = true, .resumed_from = from_};
}

TryResult Receiver::out_of_time() const {
  return {.code = Code::kDeadlineExceeded,
          .what = fmt::format("not finished within {} ms, {} bytes are there; "
                              "try again to resume",
                              options_.total_timeout_ms, part_.size())};
}

TryResult Receiver::stalled() const {
  return {.retry = true,
          .code = Code::kDeadlineExceeded,
          .what = fmt::format("the server sent nothing for {} ms after {} "
                              "bytes; try again later",
                              options_.stall_timeout_ms, part_.size())};
}

TryResult Receiver::ended_early(const std::string& what) const {
  return {.retry = true,
          .code = Code::kDataLoss,
          .what = fmt::format("{}: the connection ended early, {} bytes are "
                              "there; try again",
                              what, part_.size())};
}

}  // namespace berth::io
