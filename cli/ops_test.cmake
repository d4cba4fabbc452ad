# Fails when docs/ops.md is not what the program prints.
set(ENV{BERTH_SIM} "GPUx1")
execute_process(COMMAND ${BERTH} ops --markdown OUTPUT_VARIABLE now RESULT_VARIABLE status)
file(READ ${EXPECTED} committed)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "berth ops --markdown: exit code ${status}")
endif()
if(NOT now STREQUAL committed)
  message(FATAL_ERROR "${EXPECTED} is not what `berth ops --markdown` prints; write it anew: "
    "BERTH_SIM=GPUx1 build/.../bin/berth ops --markdown > docs/ops.md")
endif()
