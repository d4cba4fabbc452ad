# Compiler flags that every Berth target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(BERTH_OUTER_FLAGS -O1)  # of BERTH_OUTER_MODULES
# Of test programs and examples: what they test is optimised, and they compile in less time.
set(BERTH_TEST_FLAGS -O0)
# Of the conformance programs, which compute as well.
set(BERTH_CONFORMANCE_FLAGS -O1)
# Seconds that a suite of tests may take, and one of the conformance programs.
set(BERTH_TEST_LIMIT 300)
set(BERTH_CONFORMANCE_LIMIT 600)
# For tests whose libraries LeakSanitizer does not get on with; other options as in ./dev. In every
# build: tools/again runs tests of one without sanitizers on a library with them.
set(BERTH_WITHOUT_LEAKS
  ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1:detect_stack_use_after_return=1)
if(BERTH_SANITIZE)  # five to ten times as slow
  set(CMAKE_CXX_FLAGS_RELEASE "-Og -g1")  # -O1 compiles for 1.6 times as long
  set(BERTH_OUTER_FLAGS "")
  set(BERTH_CONFORMANCE_FLAGS -O0)
  set(BERTH_TEST_LIMIT 1200)
  set(BERTH_CONFORMANCE_LIMIT 2400)
endif()

# GCC collects garbage once it has 0.5 GB, not before: a sixth of the time.
function(berth_compiler_memory target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=524288)
  endif()
endfunction()

# Warnings are errors; results must not depend on how an expression is contracted.
function(berth_flags target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -Wno-missing-field-initializers
    -ffp-contract=off -fno-semantic-interposition -fvisibility-inlines-hidden)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # builds fuzz targets alone, and warns of other things
    target_compile_options(${target} PRIVATE -Wno-error)
  elseif(BERTH_UNITY)  # GCC takes a source of a unity build for a header
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  berth_compiler_memory(${target})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # It takes what immortal() returns for a part of its argument.
    target_compile_options(${target} PRIVATE -Wno-dangling-reference)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE" AND NOT BERTH_BUILD_FUZZ)
    add_dependencies(${target} berth_fetch)  # which libberth opens where a program downloads
  endif()
  if(BERTH_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all)
    # GCC 12 errs about an empty optional that is instrumented.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    target_link_options(${target} PUBLIC -fsanitize=${BERTH_SANITIZE})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "SHARED|MODULE")  # calls its own inline functions, not those of a test program
      target_link_options(${target} PRIVATE -Wl,-Bsymbolic-functions)
    endif()
  endif()
endfunction()

find_program(BERTH_MOLD mold)
find_program(BERTH_LLD ld.lld)
if(BERTH_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(BERTH_LLD)
  add_link_options(-fuse-ld=lld)
endif()
find_program(BERTH_CCACHE ccache)
if(BERTH_CCACHE)
  # As ccache wants it of precompiled headers, of which none has the time or depends on it.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros ${BERTH_CCACHE})
endif()
