# check(STATUS COMMAND ARGUMENTS...): runs `berth COMMAND ...`; STATUS lists the exit codes that it may
# end with. What it prints is in `out` and `err`.
function(check wanted command)
  execute_process(COMMAND ${BERTH} ${command} ${ARGN} OUTPUT_VARIABLE out
    ERROR_VARIABLE err RESULT_VARIABLE status)
  if(NOT ";${wanted};" MATCHES ";${status};")
    message(FATAL_ERROR "berth ${command} ${ARGN}: exit code ${status}, expected ${wanted}\n${out}\n${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()
