# A program whose output cannot be written ends with another code than 0 and a
# message. COMMANDS: a list of command lines.
include(${CMAKE_CURRENT_LIST_DIR}/expect.cmake)
foreach(command ${COMMANDS})
  foreach(to "> /dev/full" ">&-")
    execute_process(COMMAND sh -c "${command} ${to}" RESULT_VARIABLE code
      ERROR_VARIABLE error)
    if(NOT code EQUAL 1)
      message(FATAL_ERROR "${command} ${to}: ends with \"${code}\", expected 1:\n${error}")
    endif()
    expect("${error}" "could not be written")
  endforeach()
  execute_process(COMMAND sh -c "${command} > /dev/null" RESULT_VARIABLE code
    ERROR_VARIABLE error)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${command}: ends with \"${code}\", expected 0:\n${error}")
  endif()
endforeach()
