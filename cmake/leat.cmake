# What every target of leat is built with, and the kinds of target: a module of the house (src/X), a
# unit test of one module, a micro-benchmark of one module, a program on the public interface.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# For everything: warnings, sanitizers, the public headers.
add_library(leat_flags INTERFACE)
target_compile_options(leat_flags INTERFACE
    -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
    -Wwrite-strings -Wimplicit-fallthrough -fno-strict-aliasing)
# Frame pointers are for debuggers and sanitizers: they cost 2 to 3 % of the instructions of a packet.
target_compile_options(leat_flags INTERFACE $<$<NOT:$<CONFIG:Release>>:-fno-omit-frame-pointer>)
target_compile_definitions(leat_flags INTERFACE _GNU_SOURCE)
target_include_directories(leat_flags INTERFACE ${PROJECT_SOURCE_DIR}/include)
if(LEAT_WERROR)
    target_compile_options(leat_flags INTERFACE -Werror)
endif()
# gcc clears and copies structures of some hundred bytes by `rep stos` and `rep movs`, which take tens
# of cycles to begin; there are several on each packet's way.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    target_compile_options(leat_flags INTERFACE
        -mmemset-strategy=unrolled_loop:1024:noalign,libcall:-1:noalign
        -mmemcpy-strategy=unrolled_loop:1024:noalign,libcall:-1:noalign)
endif()
if(LEAT_SANITIZE)
    target_compile_options(leat_flags INTERFACE
        -fsanitize=${LEAT_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(leat_flags INTERFACE -fsanitize=${LEAT_SANITIZE})
endif()

# For what may see the inside: modules, their tests and micro-benchmarks.
add_library(leat_inside INTERFACE)
target_link_libraries(leat_inside INTERFACE leat_flags)
target_include_directories(leat_inside INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(leat_inside INTERFACE $<$<CONFIG:Debug>:LEAT_DEBUG=1>)

# leat_module(NAME SOURCES … [USES module…] [LIBS library…]): one folder of src/. Makes leat_NAME, a
# static library whose internals tests can reach; its objects go into libleat too.
function(leat_module name)
    cmake_parse_arguments(M "" "" "SOURCES;USES;LIBS" ${ARGN})
    add_library(leat_${name}_objects OBJECT ${M_SOURCES})
    set_target_properties(leat_${name}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(leat_${name}_objects PRIVATE leat_inside ${M_LIBS})
    add_library(leat_${name} STATIC $<TARGET_OBJECTS:leat_${name}_objects>)
    target_link_libraries(leat_${name} PUBLIC leat_inside ${M_LIBS})
    foreach(used ${M_USES})
        target_link_libraries(leat_${name} PUBLIC leat_${used})
    endforeach()
    set_property(GLOBAL APPEND PROPERTY leat_modules ${name})
    if(M_LIBS)
        set_property(GLOBAL APPEND PROPERTY leat_libs ${M_LIBS})
    endif()
endfunction()

# leat_unit_test(test_X_what SOURCES … USES module… [LIBS …] [LABELS …]): a cmocka program, run by
# CTest under the label `unit`. The tests of sched/, and those labelled `threads`, run under
# ThreadSanitizer too; the target `thread_tests` builds them.
if(LEAT_TESTS)
    add_custom_target(thread_tests)
endif()
function(leat_unit_test name)
    cmake_parse_arguments(T "" "" "SOURCES;USES;LIBS;LABELS" ${ARGN})
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE leat_inside PkgConfig::CMOCKA ${T_LIBS})
    foreach(used ${T_USES})
        target_link_libraries(${name} PRIVATE leat_${used})
    endforeach()
    if(LEAT_LTO)
        set_target_properties(${name} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
        target_link_options(${name} PRIVATE -fno-lto)
    endif()
    add_test(NAME ${name} COMMAND ${name})
    if(name MATCHES "^test_sched_")
        list(APPEND T_LABELS threads)
    endif()
    if("threads" IN_LIST T_LABELS)
        add_dependencies(thread_tests ${name})
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "unit;${T_LABELS}" TIMEOUT 300)
endfunction()

# leat_micro(micro_what SOURCES … USES module… [LIBS …]): a micro-benchmark; `make bench` runs it,
# CTest does not.
function(leat_micro name)
    cmake_parse_arguments(B "" "" "SOURCES;USES;LIBS" ${ARGN})
    add_executable(${name} ${B_SOURCES})
    target_link_libraries(${name} PRIVATE leat_inside ${B_LIBS})
    foreach(used ${B_USES})
        target_link_libraries(${name} PRIVATE leat_${used})
    endforeach()
endfunction()

# leat_program(NAME SOURCES … [LIBS …]): a program that sees the public headers alone, on libleat.
function(leat_program name)
    cmake_parse_arguments(P "" "" "SOURCES;LIBS" ${ARGN})
    add_executable(${name} ${P_SOURCES})
    target_link_libraries(${name} PRIVATE leat_flags leat::leat ${P_LIBS})
endfunction()

# A folder that may not be there: one that is still to come, or that a release leaves out.
function(leat_optional_subdirectory dir)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt)
        add_subdirectory(${dir})
    endif()
endfunction()
