// A server that answers GET and HEAD on one port, for probes and scrapers.
//
// One thread serves all connections; none can hold it: each has a deadline and
// a limit of bytes, the oldest of too many is closed, and every answer closes
// its connection. What strangers send reaches the handler as a path only.

#ifndef BERTH_BASE_HTTP_SERVER_H_
#define BERTH_BASE_HTTP_SERVER_H_

#include <functional>
#include <string>

namespace berth {

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "text/plain; charset=utf-8";
};
using HttpHandler = std::function<HttpAnswer(const std::string& path)>;

struct HttpLimits {
  double seconds = 5;  // of a connection
  size_t connections = 64, request_bytes = 8192;
};

// Listens at "8080" (all interfaces), "127.0.0.1:8080" or "[::1]:8080"; returns
// the socket. Throws errors::InvalidArgument, quoting `what`, for anything
// else, errors::Unavailable if it cannot listen there.
int listen_http(const std::string& what, const std::string& address);

// Answers at the socket, on a thread of its own, until the process ends. What
// the handler throws is an answer, too: 500.
void serve_http(int listening, HttpHandler handler, HttpLimits limits = {});

}  // namespace berth

#endif  // BERTH_BASE_HTTP_SERVER_H_
