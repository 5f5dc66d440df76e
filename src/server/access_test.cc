#include "server/access.h"

#include <gtest/gtest.h>

#include "server/routes.h"

namespace dunlin {
namespace {

TEST(Access, knows_the_names_of_this_machine) {
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:8080", "[::1]",
                           "[::1]:8080", "app.localhost:1", "localhost."})
    EXPECT_TRUE(is_trusted_host(host, "127.0.0.1")) << host;
  for (const char* host : {"", "example.com", "127.0.0.1.example.com", "127.evil", "localhost.evil",
                           "evil-localhost", "[::2]", "[::1", "[::1]x", "a:b:c", "10.0.0.1"})
    EXPECT_FALSE(is_trusted_host(host, "127.0.0.1")) << host;
  EXPECT_TRUE(is_trusted_host("my-box:8080", "My-Box"));
}

TEST(Access, refuses_pages_from_elsewhere_only) {
  EXPECT_FALSE(is_trusted_origin("https://evil.example", "127.0.0.1"));
  EXPECT_FALSE(is_trusted_origin("HTTP://localhost.evil", "127.0.0.1"));
  for (const char* origin : {"", "null", "http://localhost:3000", "http://[::1]:8080",
                             "vscode-webview://abc", "chrome-extension://x"})
    EXPECT_TRUE(is_trusted_origin(origin, "127.0.0.1")) << origin;
}

TEST(Access, takes_the_right_key_only) {
  EXPECT_TRUE(is_right_key("Bearer abc", "abc"));
  for (const char* header : {"", "Bearer", "Bearer ", "Bearer ab", "Bearer abcd", "Bearer abcabc",
                             "Basic abc", "abc", "Bearer  abc"})
    EXPECT_FALSE(is_right_key(header, "abc")) << header;
}

TEST(Routes, find_paths_whatever_the_query) {
  EXPECT_EQ(find_route("/v1/chat/completions?a=b").route, Route::kChat);
  EXPECT_EQ(find_route("/v1/models/a%20b/c").model_id, "a b/c");
  EXPECT_EQ(find_route("/v1/models/%zz%4").model_id, "%zz%4");
  EXPECT_EQ(find_route("/").route, Route::kStatic);
  EXPECT_EQ(find_route("/js/main.js").file->content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(find_route("/vendor/purify.js").route, Route::kStatic);
  for (const char* path : {"", "*", "/v1", "/v1/models/", "/js", "//", "/index.htm", "/%2e%2e/x"})
    EXPECT_EQ(find_route(path).route, Route::kNone) << path;
}

}  // namespace
}  // namespace dunlin
