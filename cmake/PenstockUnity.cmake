# Sources of a library compiled in groups, for builds that begin with nothing: a group reads headers once, and makes
# what their templates make once. The Makefile and .ci/run build so, in a third of the time. Off elsewhere, as for
# wheels: a change of one file compiles its whole group, a missing include is not noticed, and a call may find a
# function that is local to another file of the group. So tools/alone.py compiles some sources by themselves in each
# run of .ci/run.
option(PENSTOCK_GROUPS "Compile the sources of libraries and of test programs in groups" OFF)
# Groups of 16 sources take a quarter less time to compile than groups of eight, but leave most of many cores idle.
cmake_host_system_information(RESULT PENSTOCK_CORES QUERY NUMBER_OF_LOGICAL_CORES)
if(PENSTOCK_CORES GREATER 4)
  set(PENSTOCK_GROUP 8)
else()
  set(PENSTOCK_GROUP 16)
endif()

# penstock_alone(TARGET sources...): each is compiled by itself, because it has a name in its anonymous namespace that
# another source of the target has too.
function(penstock_alone target)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Kernels have no groups: nvcc would leave cores without work.
function(penstock_group)
  if(NOT PENSTOCK_GROUPS)
    return()
  endif()
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${PENSTOCK_GROUP})
  foreach(target ${ARGN})
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    list(FILTER sources INCLUDE REGEX "[.]cu$")
    list(TRANSFORM sources REPLACE "^([^/])" "${folder}/\\1")
    if(sources)
      penstock_alone(${target} ${sources})
    endif()
  endforeach()
endfunction()
