# dunlin_precompile(NAME [TEST]): with DUNLIN_PRECOMPILE, the headers that most files include are
# parsed once a build: dunlin_base makes the libraries' precompiled header, base_test the tests'.
# Off by default, so that a build without it says where an #include is missing.
set(DUNLIN_PRECOMPILED
  <algorithm> <array> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <limits> <map>
  <memory> <mutex> <optional> <random> <span> <sstream> <string> <string_view> <thread> <unordered_map>
  <utility> <vector> <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)

function(dunlin_precompile NAME)
  cmake_parse_arguments(ARG "TEST" "" "" ${ARGN})
  if(NOT DUNLIN_PRECOMPILE)
    return()
  endif()
  set(owner dunlin_base)
  set(headers ${DUNLIN_PRECOMPILED})
  if(ARG_TEST)
    set(owner base_test)
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  if(NAME STREQUAL owner)
    target_precompile_headers(${NAME} PRIVATE ${headers})
  else()
    target_precompile_headers(${NAME} REUSE_FROM ${owner})
  endif()
endfunction()
