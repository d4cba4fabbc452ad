// A socket whose bytes travel over a gRPC stream (transport "grpc"), for users
// that need one: the exchange.

#ifndef BERTH_RPC_GRPC_SOCKET_H_
#define BERTH_RPC_GRPC_SOCKET_H_

#include <memory>

#include "rpc/connection.h"
#include "rpc/socket.h"
#include "rpc/threads.h"

namespace berth::rpc {

// Returns the user's end of a socket; two threads move bytes between it and the
// connection until either closes. Throws errors::ResourceExhausted.
Socket socket_over(std::shared_ptr<GrpcConnection> connection,
                   Threads& threads);

}  // namespace berth::rpc

#endif  // BERTH_RPC_GRPC_SOCKET_H_
