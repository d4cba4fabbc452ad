// What the engine asks of the network, by Python's urllib, ssl and hashlib: the
// wheel needs neither libcurl nor OpenSSL.

#include "io/network.h"

#include "classes.h"
#include "convert.h"
#include "io/download.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using io::Receiver;
using io::TryResult;

class PythonNetwork final : public io::Network {
 public:
  TryResult transfer(Receiver& to, Clock::time_point deadline) override {
    const Gil gil;
    const auto& o = to.options();
    const double left =
        std::chrono::duration<double>(deadline - Clock::now()).count();
    if (left <= 0) return to.out_of_time();
    nb::object answer =
        nb::module_::import_("berth._fetch")
            .attr("Answer")(o.url, to.from(),
                            static_cast<double>(o.connect_timeout_ms) / 1e3,
                            static_cast<double>(o.stall_timeout_ms) / 1e3,
                            left);
    struct Close {
      ~Close() {
        try {
          answer.attr("close")();
        } catch (nb::python_error& e) {
          e.discard_as_unraisable("a connection that closes");
        }
      }
      nb::object& answer;
    } close{answer};
    const auto status = nb::cast<long>(answer.attr("status"));
    if (nb::cast<std::string>(answer.attr("fault")).empty() &&
        to.begin(status, nb::cast<int64_t>(answer.attr("range_start")))) {
      const auto length = nb::cast<int64_t>(answer.attr("length"));
      while (store(nb::cast<nb::bytes>(answer.attr("read")()), to)) {
        const Free free;
        to.progress(length, status);
      }
    }
    return judge(to, nb::cast<std::string>(answer.attr("fault")),
                 nb::cast<std::string>(answer.attr("what")), status);
  }

  std::string digest(const char* algorithm, io::ByteSource& source) override {
    const Gil gil;
    nb::object hash = nb::module_::import_("hashlib").attr("new")(
        algorithm, "usedforsecurity"_a = false);
    for (auto next = source.peek(); !next.empty(); next = source.peek()) {
      hash.attr("update")(nb::bytes(next.data(), next.size()));
      source.skip(next.size());
    }
    return nb::cast<std::string>(hash.attr("hexdigest")());
  }

 private:
  static bool store(const nb::bytes& piece, Receiver& to) {
    if (piece.size() == 0) return false;
    const Free free;
    return to.body(
        {reinterpret_cast<const uint8_t*>(piece.data()), piece.size()});
  }

  static TryResult judge(Receiver& to, const std::string& fault,
                         const std::string& what, long status) {
    if (fault.empty()) return to.end(status);
    if (fault == "out of time") return to.out_of_time();
    if (fault == "stalled") return to.stalled();
    if (fault == "ended early") return to.ended_early(what);
    if (fault == "not connected") {
      return {.retry = true,
              .code = errors::Code::kDeadlineExceeded,
              .what = what + "; check the network, or raise the timeout"};
    }
    return {.retry = fault != "refused",
            .what = what + "; check the network connection and the URL"};
  }
};

}  // namespace

void add_network(nb::module_& m) {
  io::set_network(std::make_unique<PythonNetwork>());
  m.def(
      "download",
      [](const std::string& url, const std::string& path,
         const std::string& sha256, int64_t bytes, nb::dict milliseconds) {
        io::DownloadOptions o{.url = url, .path = path, .sha256 = sha256};
        o.expected_bytes = bytes;
        o.max_bytes = int64_t{1} << 40;
        const auto take = [&](const char* name, int64_t& to) {
          if (milliseconds.contains(name)) {
            to = nb::cast<int64_t>(milliseconds[name]);
          }
        };
        take("connect", o.connect_timeout_ms);
        take("stall", o.stall_timeout_ms);
        take("total", o.total_timeout_ms);
        const auto done = [&] {
          const Free free;
          return io::download(o);
        }();
        return nb::make_tuple(done.bytes, done.resumed_from);
      },
      "url"_a, "path"_a, "sha256"_a = "", "bytes"_a = -1,
      "milliseconds"_a = nb::dict());
}

}  // namespace berth::python
