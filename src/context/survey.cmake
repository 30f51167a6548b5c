# The survey: included by this layer's CMakeLists.txt.
target_sources(penstock_objects PRIVATE survey.cpp survey_direct.cpp survey_gpu.cpp survey_place.cpp survey_system.cpp)
penstock_test(survey_test survey_test.cpp)
