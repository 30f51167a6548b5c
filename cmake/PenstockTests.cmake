# penstock_test(NAME sources...): one GoogleTest program, one ctest entry. Does nothing when tests are off.
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

function(penstock_test name)
  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE penstock_test_support penstock GTest::gtest GTest::gtest_main)
  # Lines are enough to find a failed test's place; what tests hold of the library is still optimised as it is.
  target_compile_options(${name} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:RelWithDebInfo>>:-g1>)
  penstock_precompile(test ${name} <gtest/gtest.h>)
  add_test(NAME ${name} COMMAND ${name})
  list(LENGTH ARGN sources)  # ctest -j starts with the largest
  set_tests_properties(${name} PROPERTIES TIMEOUT 240 COST ${sources})
endfunction()
