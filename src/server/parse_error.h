// What to answer to bytes that are no sound request. Beast's and Asio's types are in here: include
// it in server/*.cc only.
#pragma once

#include <optional>

#include <boost/system/error_code.hpp>

#include "api/api_error.h"
#include "server/server.h"

namespace dunlin {

// What was wrong with bytes that the parser refused; nullopt where the client is simply gone.
std::optional<ApiError> parse_error(const boost::system::error_code& error,
                                    const ServerConfig& config);

}  // namespace dunlin
