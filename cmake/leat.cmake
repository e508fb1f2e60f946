# What every target of leat is built with, and the three kinds of target: a module of the house
# (src/X), a unit test of one module, a micro-benchmark of one module.

add_library(leat_flags INTERFACE)
target_compile_options(leat_flags INTERFACE
    -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
    -Wwrite-strings -Wimplicit-fallthrough -fno-omit-frame-pointer -fno-strict-aliasing)
target_compile_definitions(leat_flags INTERFACE _GNU_SOURCE $<$<CONFIG:Debug>:LEAT_DEBUG=1>)
target_include_directories(leat_flags INTERFACE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(LEAT_WERROR)
    target_compile_options(leat_flags INTERFACE -Werror)
endif()
if(LEAT_SANITIZE)
    target_compile_options(leat_flags INTERFACE
        -fsanitize=${LEAT_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(leat_flags INTERFACE -fsanitize=${LEAT_SANITIZE})
endif()

set_property(GLOBAL PROPERTY leat_modules "")

# leat_module(NAME SOURCES … [USES module…] [LIBS library…]): one folder of src/. Makes leat_NAME, a
# static library whose internals tests can reach; its objects go into libleat too.
function(leat_module name)
    cmake_parse_arguments(M "" "" "SOURCES;USES;LIBS" ${ARGN})
    add_library(leat_${name}_objects OBJECT ${M_SOURCES})
    set_target_properties(leat_${name}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(leat_${name}_objects PRIVATE leat_flags ${M_LIBS})
    add_library(leat_${name} STATIC $<TARGET_OBJECTS:leat_${name}_objects>)
    target_link_libraries(leat_${name} PUBLIC leat_flags ${M_LIBS})
    foreach(used ${M_USES})
        target_link_libraries(leat_${name} PUBLIC leat_${used})
    endforeach()
    set_property(GLOBAL APPEND PROPERTY leat_modules ${name})
    if(M_LIBS)
        set_property(GLOBAL APPEND PROPERTY leat_libs ${M_LIBS})
    endif()
endfunction()

# leat_unit_test(test_X_what SOURCES … USES module… [LIBS …]): a cmocka program, run by CTest.
function(leat_unit_test name)
    cmake_parse_arguments(T "" "" "SOURCES;USES;LIBS" ${ARGN})
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE leat_flags PkgConfig::CMOCKA ${T_LIBS})
    foreach(used ${T_USES})
        target_link_libraries(${name} PRIVATE leat_${used})
    endforeach()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
endfunction()

# leat_micro(bench_what SOURCES … USES module… [LIBS …]): a micro-benchmark; built, never run by CTest.
function(leat_micro name)
    cmake_parse_arguments(B "" "" "SOURCES;USES;LIBS" ${ARGN})
    add_executable(${name} ${B_SOURCES})
    target_link_libraries(${name} PRIVATE leat_flags ${B_LIBS})
    foreach(used ${B_USES})
        target_link_libraries(${name} PRIVATE leat_${used})
    endforeach()
endfunction()

# A folder that may not be there in a partial checkout (a release without tests, say).
function(leat_optional_subdirectory dir)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt)
        add_subdirectory(${dir})
    endif()
endfunction()
