#include "device/failure_log.h"

#include <fmt/format.h>

#include <new>

#include "base/where.h"
#include "device/device.h"

namespace berth {

namespace {
constexpr size_t kMostRanges = 64;
}

FailureRef make_failure(errors::Code code, const Device& device,
                        const Work& work, std::string_view why) {
  // Messages of kernels begin with the op, which stands here already.
  const std::string op = fmt::format("{}: ", work.what);
  if (why.starts_with(op)) why.remove_prefix(op.size());
  const std::string name = device.short_name();
  std::string text = fmt::format("{} failed on {}{}: {}", work.what, name,
                                 where_text(nullptr, work.site), why);
  // A lost device has no end to wait for; a plan that fails on core sets lets
  // them work again itself.
  const bool plan = device.type() == "CPU" && work.site.file == nullptr;
  if (code != errors::Code::kUnavailable && !plan) {
    text += fmt::format(
        "; what {} was given after that is skipped, until "
        "config::reset_device_error(\"{}\")",
        name, name);
  }
  return std::make_shared<const Failure>(Failure{code, std::move(text)});
}

FailureRef run_work(const Work& work, Stream& stream) {
  const Device& device = stream.device();
  try {
    if (work.run) work.run(work.context, stream);
    return nullptr;
  } catch (const errors::Error& e) {
    return make_failure(e.code(), device, work, e.what());
  } catch (const std::bad_alloc&) {
    return make_failure(errors::Code::kResourceExhausted, device, work,
                        "the host is out of memory");
  } catch (const std::exception& e) {
    return make_failure(errors::Code::kInternal, device, work, e.what());
  } catch (...) {
    return make_failure(errors::Code::kUnknown, device, work,
                        "unknown exception");
  }
}

void FailureLog::add(uint64_t sequence, FailureRef failure) {
  if (failure && !poisoned()) {
    ranges_.push_back({sequence, 0, std::move(failure)});
  }
}

void FailureLog::reset(uint64_t last) {
  if (poisoned()) ranges_.back().last = last;
  if (ranges_.size() > kMostRanges) {
    // Rather refuse old good results than return old bad ones.
    ranges_[1].first = ranges_[0].first;
    ranges_.erase(ranges_.begin());
  }
}

FailureRef FailureLog::at(uint64_t sequence) const {
  for (const Range& r : ranges_) {
    if (r.first <= sequence && (r.last == 0 || sequence <= r.last)) {
      return r.failure;
    }
  }
  return nullptr;
}

}  // namespace berth
