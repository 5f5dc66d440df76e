// The files of web/, built into the program (cmake/embed_files.cmake writes static_files_data.cc).
#pragma once

#include <span>
#include <string_view>

namespace dunlin {

struct StaticFile {
  std::string_view path;  // "/app.js"; the page itself is "/index.html"
  std::string_view content_type;
  std::string_view etag;  // quoted, of the content
  std::string_view content;
};

std::span<const StaticFile> static_files();  // generated

// "/" is the page. nullptr: no such file.
const StaticFile* find_static_file(std::string_view path);

// What the page may load and do: its own files and nothing else.
inline constexpr std::string_view kContentSecurityPolicy =
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

}  // namespace dunlin
