# The Python modules. scikit-build-core builds them (pip install .), or CMake with -DPENSTOCK_PYTHON=ON if nanobind is
# in the interpreter's site-packages.
#
# Each module contains nanobind and the code of bindings/python/shared. All are in one nanobind domain, by which a
# module takes the objects of another, and all load the one library in penstock/lib.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
if(NOT nanobind_DIR AND NOT nanobind_ROOT)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                  OUTPUT_VARIABLE nanobind_ROOT ERROR_QUIET)
endif()
find_package(nanobind CONFIG REQUIRED)

# Bindings are thin: with the preset of fuzzing they take longest to optimise, and gain nothing by it.
function(penstock_not_optimised_to_fuzz target)
  if(PENSTOCK_FUZZ)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# penstock_python_module(NAME PLACE sources...): a module in the package whose folder is PLACE, in the build tree as in
# a wheel. It shows its entry point only, so that the C++ inside cannot meet another copy of itself in the same process.
# It loads the library by a path relative to itself, whatever LD_LIBRARY_PATH says: the two are of one build.
function(penstock_python_module name place)
  set(map ${PROJECT_SOURCE_DIR}/bindings/python/module.map)
  set(folder ${PENSTOCK_PACKAGES}/${place})
  file(RELATIVE_PATH library ${folder} ${PENSTOCK_PACKAGE}/lib)
  file(RELATIVE_PATH destination ${PENSTOCK_PACKAGE} ${folder})
  nanobind_add_module(${name} NB_STATIC NB_DOMAIN penstock ${ARGN})
  target_link_libraries(${name} PRIVATE penstock_python)
  penstock_not_optimised_to_fuzz(${name})
  target_link_options(${name} PRIVATE LINKER:--version-script=${map} LINKER:--disable-new-dtags)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${folder} BUILD_RPATH "$ORIGIN/${library}"
    INSTALL_RPATH "$ORIGIN/${library}" LINK_DEPENDS ${map})
  install(TARGETS ${name} LIBRARY DESTINATION ./${destination})  # pyproject.toml installs into the package penstock
endfunction()
