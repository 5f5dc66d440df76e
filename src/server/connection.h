// One client connection: reads requests one after the other, answers each. Lives on the I/O
// thread. Include it in server/*.cc only.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "server/server_context.h"

namespace dunlin {

// Serves the socket until it is closed; the object keeps itself alive for so long.
void start_connection(ServerContext& context, boost::asio::ip::tcp::socket socket);

// For the server, when it drains: closes connections without a request at once, and cancels the
// answers that still run where `cancel_running`.
void wind_down(Connection& connection, bool cancel_running);

}  // namespace dunlin
