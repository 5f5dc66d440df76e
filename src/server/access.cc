#include "server/access.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "base/ascii.h"

namespace dunlin {
namespace {

bool is_digits_and_dots(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) || c == '.'; });
}

}  // namespace

bool is_loopback_name(std::string_view host) {
  std::string name = ascii_lower(host);
  if (name.size() > 1 && name.back() == '.') name.pop_back();
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  if (name == "::1" || name == "0:0:0:0:0:0:0:1") return true;
  return name.starts_with("127.") && is_digits_and_dots(name) &&
         std::count(name.begin(), name.end(), '.') == 3;
}

std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    if (end == std::string_view::npos) return {};
    const std::string_view rest = authority.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') return {};
    return authority.substr(1, end - 1);
  }
  const auto colon = authority.find(':');
  if (colon != authority.rfind(':')) return {};
  return authority.substr(0, colon);
}

bool is_trusted_host(std::string_view host_header, std::string_view bound_host) {
  const std::string_view host = host_of(host_header);
  return !host.empty() && (is_loopback_name(host) || equal_but_case(host, bound_host));
}

bool is_trusted_origin(std::string_view origin_header, std::string_view bound_host) {
  const std::string origin = ascii_lower(origin_header);
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme))
      return is_trusted_host(std::string_view(origin).substr(scheme.size()), bound_host);
  }
  return true;
}

bool is_right_key(std::string_view authorization_header, std::string_view key) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization_header.size() < kScheme.size() ||
      !equal_but_case(authorization_header.substr(0, kScheme.size()), kScheme))
    return false;
  const std::string_view given = authorization_header.substr(kScheme.size());
  // Every byte of the given key is looked at, whatever came before.
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = key.empty() ? '\0' : key[i % key.size()];
    difference |= static_cast<unsigned char>(given[i] ^ expected);
  }
  return difference == 0;
}

}  // namespace dunlin
