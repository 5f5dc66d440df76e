# dunlin_test_data(TARGET NAME ...): unpacks tests/golden/NAME.tar.xz into the build folder before
# the test program TARGET is built, and tells it the place as DUNLIN_TEST_DATA_DIR.
function(dunlin_test_data TARGET)
  if(NOT TARGET ${TARGET})
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/test_data)
  foreach(name ${ARGN})
    if(NOT TARGET test_data_${name})
      set(archive ${PROJECT_SOURCE_DIR}/tests/golden/${name}.tar.xz)
      set(stamp ${folder}/${name}.stamp)
      file(MAKE_DIRECTORY ${folder})
      add_custom_command(
        OUTPUT ${stamp}
        COMMAND ${CMAKE_COMMAND} -E tar xf ${archive}
        COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
        DEPENDS ${archive}
        WORKING_DIRECTORY ${folder}
        COMMENT "Unpacking tests/golden/${name}.tar.xz")
      add_custom_target(test_data_${name} DEPENDS ${stamp})
    endif()
    add_dependencies(${TARGET} test_data_${name})
  endforeach()
  target_compile_definitions(${TARGET} PRIVATE DUNLIN_TEST_DATA_DIR="${folder}")
endfunction()
