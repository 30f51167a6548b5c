# Install rules: headers, libpenstock.so (target penstock::penstock, for C and C++), libpenstock.a (target
# penstock::cpp, for C++), the CMake package and penstock.pc.
include(CMakePackageConfigHelpers)
set(PENSTOCK_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)

install(FILES ${PROJECT_SOURCE_DIR}/include/penstock.h ${PROJECT_SOURCE_DIR}/include/penstock_history.h
  ${PROJECT_SOURCE_DIR}/include/penstock_mpi.h ${PROJECT_SOURCE_DIR}/include/penstock_mpi_exchange.h
  ${PROJECT_SOURCE_DIR}/include/penstock_restart.h ${PROJECT_SOURCE_DIR}/include/penstock_snapshot.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
if(PENSTOCK_PYTHON)  # a wheel contains no links: for -lpenstock a linker script names the library
  set(link NAMELINK_SKIP)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/wheel/libpenstock.so "INPUT(libpenstock.so.0)\n")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/wheel/libpenstock.so DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT development)
else()
  set(link NAMELINK_COMPONENT development)
endif()
install(TARGETS penstock_shared EXPORT penstockTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development ${link})
install(FILES $<TARGET_FILE:penstock_static> DESTINATION ${CMAKE_INSTALL_LIBDIR} ${PENSTOCK_NOT_IN_A_WHEEL})
if(TARGET penstock-cufile-probe)  # beside the library, which searches for it there
  install(TARGETS penstock-cufile-probe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ${PENSTOCK_NOT_IN_A_WHEEL})
endif()
install(EXPORT penstockTargets NAMESPACE penstock:: DESTINATION ${PENSTOCK_PACKAGE_DIR} COMPONENT development)

set(PENSTOCK_NEEDS_URING OFF)
if(PENSTOCK_URING_LIBRARY)
  set(PENSTOCK_NEEDS_URING ON)
endif()
set(PENSTOCK_NEEDS_AIO OFF)
if(PENSTOCK_AIO_LIBRARY)
  set(PENSTOCK_NEEDS_AIO ON)
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/penstockConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/penstockConfig.cmake INSTALL_DESTINATION ${PENSTOCK_PACKAGE_DIR}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/penstockConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
# penstock.pc finds its library relative to itself, so that an installed tree can be moved.
file(RELATIVE_PATH PENSTOCK_PC_INCLUDE ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(${CMAKE_CURRENT_LIST_DIR}/penstock.pc.in ${CMAKE_CURRENT_BINARY_DIR}/penstock.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/penstockConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/penstockConfigVersion.cmake
  DESTINATION ${PENSTOCK_PACKAGE_DIR} COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/penstock.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)
