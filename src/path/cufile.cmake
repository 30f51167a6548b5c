# cuFile: opened at run time, so it is part of every build. The probe program opens it first, where a hang harms nobody.
target_sources(penstock_objects PRIVATE
  cufile.cpp cufile_api.cpp cufile_library.cpp cufile_probe.cpp cufile_status.cpp gds.cpp gds_batch.cpp gds_stream.cpp)

add_executable(penstock-cufile-probe
  ${PROJECT_SOURCE_DIR}/tools/cufile_probe/main.cpp cufile_api.cpp cufile_library.cpp)
target_include_directories(penstock-cufile-probe PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(penstock-cufile-probe PRIVATE penstock_options ${CMAKE_DL_LIBS})
set_target_properties(penstock-cufile-probe PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(PENSTOCK_TESTS)
  add_library(fake_cufile MODULE ${PROJECT_SOURCE_DIR}/tests/fakes/fake_cufile.cpp)
  add_library(fake_cufile_old MODULE ${PROJECT_SOURCE_DIR}/tests/fakes/fake_cufile.cpp)
  target_compile_definitions(fake_cufile_old PRIVATE FAKE_CUFILE_OLD=1)
  add_library(fake_libcuda MODULE ${PROJECT_SOURCE_DIR}/tests/fakes/fake_libcuda.cpp)
  foreach(fake fake_cufile fake_cufile_old)
    target_include_directories(${fake} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${fake} PRIVATE penstock_options Threads::Threads)
  endforeach()
  target_link_libraries(fake_libcuda PRIVATE penstock_options)
endif()
penstock_test(cufile_test cufile_driver_test.cpp cufile_kit_test.cpp cufile_log_test.cpp cufile_test.cpp)
if(PENSTOCK_TESTS)
  target_compile_definitions(cufile_test PRIVATE
    FAKE_CUFILE="$<TARGET_FILE:fake_cufile>" FAKE_LIBCUDA="$<TARGET_FILE:fake_libcuda>"
    FAKE_CUFILE_OLD="$<TARGET_FILE:fake_cufile_old>"
    CUFILE_PROBE="$<TARGET_FILE:penstock-cufile-probe>")
  add_dependencies(cufile_test fake_cufile fake_cufile_old fake_libcuda penstock-cufile-probe)
endif()
