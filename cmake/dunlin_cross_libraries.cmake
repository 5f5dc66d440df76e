# The libraries of a cross build, without packages of the other architecture: Debian's cross compilers
# read the headers in /usr/include, so fmt serves as headers alone, and GoogleTest is built from
# Debian's sources.
add_library(dunlin_fmt INTERFACE)
target_compile_definitions(dunlin_fmt INTERFACE FMT_HEADER_ONLY)
add_library(fmt::fmt ALIAS dunlin_fmt)

if(DUNLIN_TESTS)
  set(INSTALL_GTEST OFF)
  add_subdirectory(/usr/src/googletest ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)
endif()
