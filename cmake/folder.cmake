# packtrain_folder(NAME [LEFT folder…] [LINK libraries…] [WITHOUT files…])
# One static library per folder of src/, with every .cc of the folder but its tests and the files WITHOUT names;
# LEFT names the folders it may use: those to the left of it on the line of dependence. The folder's *_test.cc make
# one program, NAME_test.
function(packtrain_folder name)
  cmake_parse_arguments(ARG "" "" "LEFT;LINK;WITHOUT" ${ARGN})
  set(here ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${here}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${here}/*_test.cc)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  foreach(file ${ARG_WITHOUT})
    list(REMOVE_ITEM sources ${here}/${file})
  endforeach()
  add_library(packtrain_${name} STATIC ${sources})
  target_include_directories(packtrain_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  foreach(folder ${ARG_LEFT})
    target_link_libraries(packtrain_${name} PUBLIC packtrain_${folder})
  endforeach()
  target_link_libraries(packtrain_${name} PRIVATE packtrain_third_party ${ARG_LINK} PUBLIC Threads::Threads)
  packtrain_warnings(packtrain_${name})
  if(PACKTRAIN_UNITY)
    packtrain_unity(packtrain_${name})
  endif()
  if(PACKTRAIN_TESTS AND tests)
    packtrain_test(${name}_test SOURCES ${tests} LINK packtrain_${name})
  endif()
endfunction()

# packtrain_unity(TARGET): the files of the target are compiled several at a time, so that headers and templates are dealt
# with once for all of them. For this no two files of a folder give one name to two things, also not in their anonymous
# namespaces; the compiler says "redefinition" where they do.
function(packtrain_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
endfunction()

function(packtrain_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety)
  else()
    target_compile_options(${target} PRIVATE -Wno-restrict)   # GCC 12 reports std::string itself (its bug 105329)
    # GCC takes a file that another one includes for a header, and a class of its own there for everybody's.
    target_compile_options(${target} PRIVATE $<$<BOOL:$<TARGET_PROPERTY:${target},UNITY_BUILD>>:-Wno-subobject-linkage>)
  endif()
  if(PACKTRAIN_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# packtrain_test(NAME SOURCES files… LINK targets…): a GoogleTest program, one ctest entry.
function(packtrain_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE PACKTRAIN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")   # for golden files
  target_link_libraries(${name} PRIVATE ${ARG_LINK} packtrain_third_party GTest::gtest GTest::gtest_main)
  packtrain_warnings(${name})
  target_compile_options(${name} PRIVATE -O0)   # twice as quick to compile; what is tested stays optimised
  packtrain_unity(${name})   # always: most of what a test includes is GoogleTest
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 1800)
endfunction()
