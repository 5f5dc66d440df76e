# Turns files into a C++ source with their bytes: the span that server/static_files.h declares.
#
# As a module: dunlin_embed_files(OUTPUT x.cc FILES "/url=path" ...)
# As a script (what the module runs at build): cmake -DOUTPUT=x.cc -DLIST=file -P embed_files.cmake,
# where LIST holds one "/url=path" a line.
if(CMAKE_SCRIPT_MODE_FILE)
  set(types_html "text/html; charset=utf-8")
  set(types_css "text/css; charset=utf-8")
  set(types_js "text/javascript; charset=utf-8")
  set(types_mjs "text/javascript; charset=utf-8")
  set(types_json "application/json")
  set(types_webmanifest "application/manifest+json")
  set(types_svg "image/svg+xml")
  set(types_png "image/png")
  set(types_ico "image/x-icon")
  set(types_woff2 "font/woff2")
  set(types_txt "text/plain; charset=utf-8")
  set(rows "")
  set(count 0)
  file(STRINGS ${LIST} entries)
  foreach(entry IN LISTS entries)
    string(REGEX MATCH "^([^=]+)=(.*)$" _ "${entry}")
    set(url "${CMAKE_MATCH_1}")
    set(path "${CMAKE_MATCH_2}")
    get_filename_component(extension "${path}" LAST_EXT)
    string(REGEX REPLACE "^\\." "" extension "${extension}")
    if(NOT DEFINED types_${extension})
      message(FATAL_ERROR "embed_files: no content type for ${path}; add one to cmake/embed_files.cmake")
    endif()
    file(SHA256 "${path}" sum)
    string(SUBSTRING ${sum} 0 16 sum)
    file(SIZE "${path}" size)
    file(READ "${path}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${hex}")
    string(APPEND rows
      "    {\"${url}\", \"${types_${extension}}\", \"\\\"${sum}\\\"\", {\"${bytes}\", ${size}}},\n")
    math(EXPR count "${count} + 1")
  endforeach()
  set(head "#include <array>\n\n#include \"server/static_files.h\"\n\nnamespace dunlin {\n\n")
  file(WRITE ${OUTPUT}
    "${head}std::span<const StaticFile> static_files() {\n  static constexpr std::array<StaticFile, ${count}> kFiles{{\n${rows}  }};\n  return kFiles;\n}\n\n}  // namespace dunlin\n")
  return()
endif()

set(DUNLIN_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(dunlin_embed_files)
  cmake_parse_arguments(ARG "" "OUTPUT" "FILES" ${ARGN})
  set(list ${ARG_OUTPUT}.list)
  list(JOIN ARG_FILES "\n" lines)
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
  set(paths ${ARG_FILES})
  list(TRANSFORM paths REPLACE "^[^=]+=" "")
  add_custom_command(
    OUTPUT ${ARG_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${ARG_OUTPUT} -DLIST=${list} -P ${DUNLIN_EMBED_SCRIPT}
    DEPENDS ${paths} ${list} ${DUNLIN_EMBED_SCRIPT}
    COMMENT "Embedding the web page"
    VERBATIM)
endfunction()
