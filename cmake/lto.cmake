# Link-time optimisation. On by default in a Release build with gcc: the packet's way crosses the
# folders of src/, and only the link sees all of it.
#
# CMake would make objects that hold nothing but gcc's intermediate code; an installed libleat.a of
# those is of no use to another compiler. So the objects are "fat": machine code too. The unit tests
# link that code (leat_unit_test() turns LTO off for them), which keeps their links short.
set(LEAT_LTO_DEFAULT OFF)
if(CMAKE_BUILD_TYPE STREQUAL Release AND CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT LEAT_SANITIZE)
    set(LEAT_LTO_DEFAULT ON)
endif()
option(LEAT_LTO "Optimise across files when linking" ${LEAT_LTO_DEFAULT})

if(LEAT_LTO)
    include(CheckIPOSupported)
    check_ipo_supported(RESULT LEAT_LTO_WORKS OUTPUT LEAT_LTO_WHY LANGUAGES C)
    if(LEAT_LTO_WORKS)
        set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
        if(CMAKE_C_COMPILER_ID STREQUAL GNU)
            set(CMAKE_C_COMPILE_OPTIONS_IPO -flto=auto -ffat-lto-objects)
        endif()
    else()
        message(WARNING "LEAT_LTO is on, but the compiler cannot: ${LEAT_LTO_WHY}")
    endif()
endif()
