// Listener: the thread that accepts and authenticates connections, and runs the
// member's timer.
//
// A connection that is not authenticated within some seconds is closed, and so
// is the oldest of too many, first of those that sent no hello. One that sends
// anything but a hello is closed with a line in the log; most of many such
// lines are only counted.

#ifndef BERTH_RPC_LISTENER_H_
#define BERTH_RPC_LISTENER_H_

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "rpc/hello.h"
#include "rpc/link.h"
#include "rpc/socket.h"

namespace berth::rpc {

class Listener {
 public:
  // All are called on the listener's thread and must not block.
  struct Events {
    std::function<void(Socket, const Hello&, Route)> on_admitted;
    std::function<void(const TaskId&, const std::string& reason)> on_refused;
    std::function<void(double now)> on_tick;
  };
  struct Limits {
    double hello_seconds = 5;
    int waiting = 1024;
    double tick_seconds = 0.05;
  };
  // `tcp`, `local`: listening sockets; there may be none. At most an eighth of
  // the process's descriptors wait, whatever the limits say.
  Listener(std::vector<Socket> tcp, Socket local, const Handshake::Gate& gate,
           Limits limits, Events events);
  ~Listener();

 private:
  struct Guest {
    Socket socket;
    Route route;
    Handshake handshake;
    std::string got;
    Deadline deadline;
  };

  void run();
  void take(int listening, Route route);
  // Returns false once the guest is gone, either way.
  bool serve(Guest& guest);
  void turn_away(Guest& guest, const std::string& reason);
  void drop_late();
  void drop(std::list<Guest>::iterator guest, const char* why);
  void log(const std::string& line);

  const std::vector<Socket> tcp_;
  const Socket local_, epoll_, wake_;
  const Handshake::Gate& gate_;
  Limits limits_;
  const Events events_;
  std::list<Guest> guests_;  // oldest first
  double lines_left_ = 20;
  int lines_lost_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_LISTENER_H_
