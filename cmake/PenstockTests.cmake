# penstock_test(NAME sources... [ALONE sources...]): one GoogleTest program, one ctest entry, or nothing when tests are
# off. Where sources are compiled in groups, those ALONE are not: they have a local name that another of them has too,
# or call what `using` of another would give another meaning. Where PENSTOCK_TESTS_OPTIMISED is ON, the test's own code
# is optimised with sanitizers too: it runs longer than it compiles. AS_PROGRAMS: as the library is, in each build, for
# what programs include and threads run.
set(PENSTOCK_TESTS_STATE "off")
if(PENSTOCK_TESTS)
  find_package(GTest)
  if(GTest_FOUND)
    enable_testing()
    set(PENSTOCK_TESTS_STATE "on")
  else()
    set(PENSTOCK_TESTS OFF)
    set(PENSTOCK_TESTS_STATE "off (GoogleTest not found)")
  endif()
endif()

# A program with what all test programs have.
function(penstock_test_program name kind)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE penstock_test_support penstock penstock_cuda_headers
    GTest::gtest GTest::gtest_main)
  # Lines are enough to find a failed test's place. Most of an assertion's compilation is optimising it: with sanitizers
  # a third to a half.
  set(options -g1)
  if(kind STREQUAL "test")
    set(otherwise "")
    if(PENSTOCK_SANITIZE OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      set(otherwise -O0)
    endif()
    list(APPEND options $<IF:$<CONFIG:RelWithDebInfo>,-Og,${otherwise}>)
  endif()
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${options}>")
  penstock_precompile(${kind} ${name} <gtest/gtest.h>)
endfunction()

function(penstock_test name)
  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" ALONE)
  set(sources ${test_UNPARSED_ARGUMENTS} ${test_ALONE})
  set(kind test)  # which is -Og in an ordinary build: over half of the time of -O2 to compile, and nearly as fast
  if(PENSTOCK_TESTS_OPTIMISED STREQUAL "AS_PROGRAMS" OR
     (PENSTOCK_TESTS_OPTIMISED AND NOT CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo"))
    set(kind optimised_test)
  endif()
  # The owner of a kind's precompiled headers has no tests: each build of some test programs builds it too.
  if(PENSTOCK_PCH AND NOT TARGET penstock_headers_of_${kind})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/no_test.cpp CONTENT "int main() {}\n")
    penstock_test_program(penstock_headers_of_${kind} ${kind} ${PROJECT_BINARY_DIR}/no_test.cpp)
    set_target_properties(penstock_headers_of_${kind} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  penstock_test_program(${name} ${kind} ${sources})
  penstock_group(${name})
  if(test_ALONE)
    penstock_alone(${name} ${test_ALONE})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  list(LENGTH sources count)  # ctest -j starts with the largest
  set_tests_properties(${name} PROPERTIES TIMEOUT 480 COST ${count})
endfunction()
