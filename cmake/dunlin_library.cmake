# dunlin_library(NAME base SRCS ... [DEPS folder ...] [PUBLIC_LIBS ...] [PRIVATE_LIBS ...]
#                [TESTS x_test.cc ...] [TEST_LIBS ...] [BENCHES x_bench.cc ...])
# One folder of src/ is one static library dunlin_NAME, one test program NAME_test and one
# micro-benchmark program NAME_bench. DEPS names other folders; tools/check_layers.py holds the
# #includes against the layers.
function(dunlin_library)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS;PUBLIC_LIBS;PRIVATE_LIBS;TESTS;TEST_LIBS;BENCHES" ${ARGN})
  set(target dunlin_${ARG_NAME})
  list(TRANSFORM ARG_DEPS PREPEND dunlin_)
  add_library(${target} STATIC ${ARG_SRCS})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PUBLIC dunlin_options ${ARG_DEPS} ${ARG_PUBLIC_LIBS} PRIVATE ${ARG_PRIVATE_LIBS})
  dunlin_precompile(${target})
  if(ARG_TESTS AND DUNLIN_TESTS)
    dunlin_unit_test(NAME ${ARG_NAME}_test SRCS ${ARG_TESTS} LIBS ${target} ${ARG_TEST_LIBS})
  endif()
  if(ARG_BENCHES AND DUNLIN_BENCHES)
    add_executable(${ARG_NAME}_bench ${ARG_BENCHES})
    target_include_directories(${ARG_NAME}_bench PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${ARG_NAME}_bench PRIVATE ${target} benchmark::benchmark_main)
  endif()
endfunction()
