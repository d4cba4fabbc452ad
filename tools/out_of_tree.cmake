# What the checks of the installed package share: their arguments, run(), install_berth().
foreach(name BUILD SOURCE GENERATOR COMPILER WORK)
  if(NOT ${name})
    message(FATAL_ERROR "${CMAKE_SCRIPT_MODE_FILE} needs -D ${name}=...")
  endif()
endforeach()

# run(WHAT COMMAND...): says what; its output is in `output`. Fails when the command does.
function(run what)
  message(STATUS "${what}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output TIMEOUT 500)
  message(STATUS "${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what}: failed (${status})")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Copies folders and files of the source tree to an empty WORK, so that nothing else of the tree can
# be found by a relative path, and installs Berth to WORK/prefix.
function(install_beside)
  file(REMOVE_RECURSE ${WORK})
  file(COPY ${ARGN} DESTINATION ${WORK})
  run("installing" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
endfunction()

# build_in(SOURCES FOLDER [CMAKE ARGUMENTS]): configures and builds WORK/SOURCES there.
function(build_in sources folder)
  run("configuring ${sources}" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK}/${sources}
    -B ${WORK}/${folder} -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_PREFIX_PATH=${WORK}/prefix ${ARGN})
  run("building ${sources}" ${CMAKE_COMMAND} --build ${WORK}/${folder})
endfunction()
