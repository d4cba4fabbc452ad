# Runs PROGRAM ARGUMENTS: exit code CODE, and each part of WITH (separated by
# |) in what it writes; none of WITHOUT.
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} OUTPUT_VARIABLE out
  ERROR_VARIABLE err RESULT_VARIABLE code TIMEOUT 120)
set(text "${out}\n${err}")
if(NOT code STREQUAL CODE)
  message(FATAL_ERROR "exit code ${code}, expected ${CODE}\n${text}")
endif()
foreach(list WITH WITHOUT)
  string(REPLACE "|" ";" parts "${${list}}")
  foreach(part IN LISTS parts)
    string(FIND "${text}" "${part}" at)
    if(list STREQUAL "WITH" AND at EQUAL -1)
      message(FATAL_ERROR "expected \"${part}\" in\n${text}")
    elseif(list STREQUAL "WITHOUT" AND NOT at EQUAL -1)
      message(FATAL_ERROR "expected no \"${part}\" in\n${text}")
    endif()
  endforeach()
endforeach()
