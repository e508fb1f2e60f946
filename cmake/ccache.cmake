# Compiles through ccache where it is installed. -DCMAKE_C_COMPILER_LAUNCHER= turns that off.
if(NOT DEFINED CMAKE_C_COMPILER_LAUNCHER)
    find_program(LEAT_CCACHE ccache)
    mark_as_advanced(LEAT_CCACHE)
    if(LEAT_CCACHE)
        set(CMAKE_C_COMPILER_LAUNCHER ${LEAT_CCACHE})
    endif()
endif()
