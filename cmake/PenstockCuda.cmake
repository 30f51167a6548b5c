# Finds nvcc. With it: target penstock_cuda brings the static runtime, which opens libcuda only when first used, so the
# same build runs on machines without a GPU. Without it the build is CPU-only and says so.
#
# The build compiles a source that needs CUDA by itself. It compiles all other sources of a library in the same way
# with CUDA and without, so that a build that began without CUDA keeps its objects (`make report` on a machine without
# a GPU). penstock_cuda_headers is for targets whose every source may include CUDA's headers: applications and tests.
include(CheckLanguage)
add_library(penstock_cuda INTERFACE)
add_library(penstock_cuda_headers INTERFACE)
set(PENSTOCK_CUDA_STATE "off (PENSTOCK_CUDA=OFF)")
set(PENSTOCK_HAS_CUDA OFF)
if(PENSTOCK_CUDA)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    target_link_libraries(penstock_cuda INTERFACE $<LINK_ONLY:CUDA::cudart_static>)
    target_include_directories(penstock_cuda_headers SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
    target_compile_definitions(penstock_cuda_headers INTERFACE PENSTOCK_HAS_CUDA=1)
    set(PENSTOCK_HAS_CUDA ON)
    set(PENSTOCK_CUDA_STATE "on (nvcc ${CMAKE_CUDA_COMPILER_VERSION})")
  else()
    set(PENSTOCK_CUDA_STATE "off (no nvcc found: CPU-only build)")
  endif()
endif()

# penstock_with_cuda(TARGET sources...): sources that only a build with CUDA has, or only one without.
function(penstock_with_cuda target)
  target_sources(${target} PRIVATE ${ARGN})
  penstock_alone(${target} ${ARGN})
  list(FILTER ARGN INCLUDE REGEX "[.]cpp$")
  if(PENSTOCK_HAS_CUDA AND ARGN)
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES
      INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}")
  endif()
endfunction()
