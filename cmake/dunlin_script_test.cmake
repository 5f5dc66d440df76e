# dunlin_script_test(NAME name SCRIPT tests/x.py LABELS label ... [ARGS ...] [VENV])
# A Python test over the built program: it gets the program's path first, then ARGS. With VENV it
# runs in .venv (tools/setup.sh test makes it), else with the system's python3. Output that holds
# "SKIP: reason" counts as skipped, and ./test repeats the reason.
function(dunlin_script_test)
  cmake_parse_arguments(ARG "VENV" "NAME;SCRIPT;TIMEOUT" "LABELS;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  set(python /usr/bin/python3)
  if(ARG_VENV)
    set(python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${python} ${PROJECT_SOURCE_DIR}/${ARG_SCRIPT} $<TARGET_FILE:dunlin> ${ARG_ARGS})
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
                       SKIP_REGULAR_EXPRESSION "SKIP: ")
endfunction()
