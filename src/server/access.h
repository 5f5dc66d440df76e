// Who may talk to the server: the Host and Origin checks of a loopback server, and the API key.
#pragma once

#include <string_view>

namespace dunlin {

// "localhost", "x.localhost", 127.x.x.x or ::1, in brackets or not, without a port.
bool is_loopback_name(std::string_view host);

// The host of "HOST[:PORT]" with the brackets of IPv6 taken off; "" where it is malformed.
std::string_view host_of(std::string_view authority);

// A web page elsewhere can make a browser send requests to 127.0.0.1 under a name of its own (DNS
// rebinding): the Host header then shows that name. `bound_host` is what --host says.
bool is_trusted_host(std::string_view host_header, std::string_view bound_host);
// The same for pages that send to the true address: a browser names the page's origin. Origins that
// are no web pages ("null", extensions, applications) pass, as does the absence of the header.
bool is_trusted_origin(std::string_view origin_header, std::string_view bound_host);

// "Bearer KEY" against the key, in time that does not depend on where they differ.
bool is_right_key(std::string_view authorization_header, std::string_view key);

}  // namespace dunlin
