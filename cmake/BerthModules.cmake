# A module is a folder of src/: its sources go into libberth.so, its *_test.cc files into one test
# program. Sources are globbed so that adding a file never touches CMake.
#
# Sources of one module are compiled together (a unity build): most of the time goes to headers and
# to templates that each of them would compile again. Names in anonymous namespaces differ within a
# module. -DBERTH_UNITY_SOURCES=8, or -DBERTH_UNITY=OFF, is quicker when the same few files are
# edited again and again.
option(BERTH_UNITY "Compile several sources of a module at once" ON)
set(BERTH_UNITY_SOURCES 45 CACHE STRING "How many sources are compiled at once, at most on average")

# berth_unity(TARGET NAME SOURCES...): groups NAME_0, NAME_1, ... A source's group follows from its
# name and a power of two, so that a new file leaves the other groups, and what a compiler cache
# holds of them, as they are.
function(berth_unity target name)
  if(NOT BERTH_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  list(LENGTH ARGN count)
  set(groups 1)
  math(EXPR enough "(${count} + ${BERTH_UNITY_SOURCES} - 1) / ${BERTH_UNITY_SOURCES}")
  while(groups LESS enough)
    math(EXPR groups "${groups} * 2")
  endwhile()
  foreach(source ${ARGN})
    cmake_path(GET source FILENAME file)
    string(MD5 hash ${file})
    string(SUBSTRING ${hash} 0 6 hash)
    math(EXPR group "0x${hash} % ${groups}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${group})
  endforeach()
endfunction()

# A module's folders of its own belong to it (one library part, one test program), except those of
# backends, and those that are named here because they have a test program of their own.
set(BERTH_FOLDERS_WITH_TESTS keras/layers)

# berth_precompile(TARGET): reads cmake/precompiled.h once. A source with flags of its own must
# have SKIP_PRECOMPILE_HEADERS.
function(berth_precompile target)
  if(BERTH_UNITY)
    target_precompile_headers(${target} PRIVATE ${berth_SOURCE_DIR}/cmake/precompiled.h)
  endif()
endfunction()

function(berth_module target path)
  set(patterns src/${path}/*.cc)
  if(NOT path MATCHES "^backends/")
    list(APPEND patterns src/${path}/*/*.cc)
  endif()
  list(TRANSFORM patterns PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  foreach(folder ${BERTH_FOLDERS_WITH_TESTS} ${path}/fuzz)
    if(NOT folder STREQUAL path)
      list(FILTER sources EXCLUDE REGEX "/src/${folder}/[^/]*$")
    endif()
  endforeach()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  target_sources(${target} PRIVATE ${sources})
  string(REPLACE "/" "_" name ${path})
  berth_unity(${target} ${name} ${sources})
  if(BERTH_BUILD_TESTS AND tests)
    set(berth_test_labels unit)
    set(berth_test_of_library ON)
    berth_test(${name}_test ${tests})
  endif()
endfunction()

# Tests of modules have the same flags: they read cmake/precompiled_tests.h once, with the first one.
function(berth_precompile_test name)
  get_property(first GLOBAL PROPERTY BERTH_FIRST_TEST)
  if(NOT BERTH_UNITY)
    return()
  elseif(first)
    target_precompile_headers(${name} REUSE_FROM ${first})
  else()
    target_precompile_headers(${name} PRIVATE ${berth_SOURCE_DIR}/cmake/precompiled_tests.h)
    set_property(GLOBAL PROPERTY BERTH_FIRST_TEST ${name})
  endif()
endfunction()

# One gtest program that may include the headers of every module. A module's tests have the ctest
# label `unit`, others `suite`; ./dev check runs those whose name does not say Slow or Stress.
# Unit tests that are made of more of Berth than the library, parts of plug-ins and of the command
# line, are listed for the target `shipped`.
function(berth_test name)
  if(NOT berth_test_labels)
    set(berth_test_labels suite)
  endif()
  if(berth_test_labels STREQUAL "unit" AND NOT berth_test_of_library)
    set_property(GLOBAL APPEND PROPERTY BERTH_TESTS_OF_PARTS ${name})
  endif()
  add_executable(${name} ${ARGN})
  berth_unity(${name} ${name} ${ARGN})
  berth_flags(${name})
  add_dependencies(${name} berth_planner)  # which libberth opens for placement "auto"
  target_compile_options(${name} PRIVATE ${BERTH_TEST_FLAGS})
  if(berth_test_of_library)
    berth_precompile_test(${name})
  endif()
  target_include_directories(${name} PRIVATE ${berth_SOURCE_DIR}/src ${berth_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE berth GTest::gtest GTest::gtest_main fmt::fmt
    nlohmann_json::nlohmann_json ZLIB::ZLIB)
  berth_suites(${name} ${BERTH_TEST_LIMIT} ${berth_test_labels} BERTH_CACHE_DIR=${CMAKE_BINARY_DIR}/test_cache
    ${berth_test_environment})
endfunction()

# berth_suites(PROGRAM TIMEOUT LABEL VARIABLE=VALUE...): each test suite of a gtest program is a
# ctest test, listed by the program once it is built.
function(berth_suites program timeout label)
  set(tests ${CMAKE_CURRENT_BINARY_DIR}/${program}_suites.cmake)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/list_suites.py)
  add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${tests}
    COMMAND ${Python3_EXECUTABLE} ${script} $<TARGET_FILE:${program}> ${program} ${tests}
      ${timeout} ${label} ${ARGN} VERBATIM)
  set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS ${script})
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${program}_include.cmake)
  file(WRITE ${include} "if(EXISTS \"${tests}\")
  include(\"${tests}\")
else()
  add_test(${program}_is_not_built ${program}_is_not_built)
endif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()

# Modules whose code runs once per function, model or message: compiled in a quarter less time.
set(BERTH_OUTER_MODULES graph passes place remote cluster distribute keras keras/layers profiler)
function(berth_outer target)
  add_library(${target}_outer OBJECT)
  berth_flags(${target}_outer)
  target_compile_options(${target}_outer PRIVATE $<$<CONFIG:Release>:${BERTH_OUTER_FLAGS}>)
  foreach(property INCLUDE_DIRECTORIES LINK_LIBRARIES)
    set_target_properties(${target}_outer PROPERTIES ${property}
      "$<TARGET_PROPERTY:${target},${property}>")
  endforeach()
  berth_precompile(${target}_outer)
endfunction()

# Every module, then every backend. A backend exports `register_<name>(BackendRegistry&)`; the list
# of calls is generated here, so adding a backend edits no other module. A backend folder may have a
# rules.cmake for files that need flags of their own; one with a CMakeLists.txt is a plug-in, built
# by that file.
function(berth_all_modules target)
  foreach(module base device tensor cluster op program ops eager graph expr autodiff passes place simulate
      exec function remote collective data io preprocess distribute keras keras/layers profiler)
    if(module IN_LIST BERTH_OUTER_MODULES)
      berth_module(${target}_outer ${module})
    else()
      berth_module(${target} ${module})
    endif()
  endforeach()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_outer>)
  file(GLOB backends CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE
    ${CMAKE_CURRENT_SOURCE_DIR}/src/backends ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/*)
  set(declarations "")
  set(calls "")
  if(BERTH_BUILD_FUZZ)
    # Readers need no backend; the loops of cpu, which sim runs, are written for GCC.
    list(REMOVE_ITEM backends cpu sim)
  endif()
  foreach(backend ${backends})
    file(GLOB has_code ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/${backend}/*.cc)
    if(NOT has_code)
      continue()
    endif()
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/${backend}/CMakeLists.txt)
      set_property(GLOBAL APPEND PROPERTY BERTH_PLUGIN_FOLDERS src/backends/${backend})
      continue()
    endif()
    berth_module(${target} backends/${backend})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/${backend}/rules.cmake)
      include(${CMAKE_CURRENT_SOURCE_DIR}/src/backends/${backend}/rules.cmake)
    endif()
    string(APPEND declarations "void register_${backend}(BackendRegistry&);\n")
    string(APPEND calls "  register_${backend}(registry);\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/generated/backends.cc CONTENT
"// Generated by cmake/BerthModules.cmake from the folders of src/backends.
#include \"device/backend_registry.h\"
namespace berth {
@declarations@
void register_all_backends(BackendRegistry& registry) {
@calls@}
}  // namespace berth
" @ONLY)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/src/device/backend_registry.h)
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated/backends.cc)
  endif()
endfunction()

function(berth_subdirectory dir)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt)
    add_subdirectory(${dir})
  endif()
endfunction()
