# Precompiled standard headers, for builds that begin with nothing and are thrown away, as those of CI: half of the time
# of a test's compilation is reading them. Off elsewhere: sources must include what they use, which such a build cannot
# notice. Where they are on, ccache keeps nothing.
set(PENSTOCK_PCH OFF CACHE STRING "Precompile the standard headers: ON, OFF, or TESTS for those of test programs alone")
set(PENSTOCK_PCH_HEADERS
  <algorithm> <array> <atomic> <bit> <cerrno> <chrono> <cmath> <condition_variable> <cstddef> <cstdint> <cstdio>
  <cstdlib> <cstring> <deque> <exception> <filesystem> <fstream> <functional> <iterator> <limits> <map> <memory>
  <mutex> <new> <numeric> <optional> <random> <set> <span> <sstream> <stdexcept> <string> <string_view>
  <system_error> <thread> <tuple> <type_traits> <unordered_map> <utility> <vector>)

# penstock_precompile(KIND TARGET extra headers...): targets of one kind have the same flags and share one file, which
# the first of them owns. A compiler takes the file if the target defines more macros than the owner, but not if it
# defines fewer. The first is therefore one of penstock_headers, which defines none.
function(penstock_precompile kind target)
  if(NOT PENSTOCK_PCH OR (PENSTOCK_PCH STREQUAL "TESTS" AND NOT kind MATCHES "test$"))
    return()
  endif()
  get_property(owner GLOBAL PROPERTY PENSTOCK_PCH_OWNER_${kind})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    return()
  endif()
  set(headers)
  foreach(header ${PENSTOCK_PCH_HEADERS} ${ARGN})
    list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
  endforeach()
  target_precompile_headers(${target} PRIVATE ${headers})
  set_property(GLOBAL PROPERTY PENSTOCK_PCH_OWNER_${kind} ${target})
endfunction()

# penstock_headers(KIND LIBRARIES extra headers...): the owner of a kind, which has no code. Each build of some programs
# builds it too.
function(penstock_headers kind libraries)
  if(NOT PENSTOCK_PCH OR PENSTOCK_PCH STREQUAL "TESTS")
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/no_code.cpp CONTENT "")
  add_library(penstock_headers_of_${kind} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/no_code.cpp)
  target_link_libraries(penstock_headers_of_${kind} PRIVATE ${libraries})
  penstock_precompile(${kind} penstock_headers_of_${kind} ${ARGN})
endfunction()
