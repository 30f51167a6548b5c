# Sources compiled in groups, for builds that begin with nothing: most of a compilation is reading headers, and a group
# reads them once. A change of one file then compiles its whole group, so a developer's own build has it off. A source
# must still include what it uses: the builds without groups notice.
option(PENSTOCK_GROUPS "Compile sources in groups of eight" OFF)
set(CMAKE_UNITY_BUILD ${PENSTOCK_GROUPS})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# penstock_alone(TARGET sources...): each is compiled by itself, because it has a name in its anonymous namespace that
# another source of the target has too.
function(penstock_alone target)
  if(TARGET ${target})
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# Kernels are compiled by nvcc, once an architecture: groups would leave cores without work.
function(penstock_kernels_alone)
  foreach(target ${ARGN})
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "[.]cu$")
    get_target_property(folder ${target} SOURCE_DIR)
    foreach(source ${sources})
      get_filename_component(source ${source} ABSOLUTE BASE_DIR ${folder})
      penstock_alone(${target} ${source})
    endforeach()
  endforeach()
endfunction()
