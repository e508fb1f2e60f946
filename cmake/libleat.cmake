# libleat, static and shared, from the objects of all modules; what is installed of it.
# Others in this tree link leat::leat (static) or leat::shared.

get_property(leat_modules GLOBAL PROPERTY leat_modules)
get_property(leat_libs GLOBAL PROPERTY leat_libs)
list(REMOVE_DUPLICATES leat_libs)
# What leat.pc adds for a static libleat. Named as libraries and not as Requires.private: that would
# ask for all that a static GnuTLS needs, of which Debian has but a part, and these stay shared.
set(leat_private "")
foreach(lib ${leat_libs})
    if(lib MATCHES "^PkgConfig::(.*)$")
        set(lib ${${CMAKE_MATCH_1}_LIBRARIES})
    endif()
    list(TRANSFORM lib PREPEND -l)
    list(APPEND leat_private ${lib})
endforeach()
list(JOIN leat_private " " leat_private)
set(leat_objects "")
foreach(module ${leat_modules})
    list(APPEND leat_objects $<TARGET_OBJECTS:leat_${module}_objects>)
endforeach()

if(NOT leat_objects)
    return() # nothing built yet
endif()

add_library(leat_archive STATIC ${leat_objects})
add_library(leat::leat ALIAS leat_archive)
add_library(leat_so SHARED ${leat_objects})
add_library(leat::shared ALIAS leat_so)

# Before 1.0 a minor version may break the binary interface, so the soname carries it.
set(leat_soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(leat_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(leat_archive leat_so PROPERTIES OUTPUT_NAME leat LINKER_LANGUAGE C)
set_target_properties(leat_so PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${leat_soversion})
target_link_libraries(leat_archive PRIVATE ${leat_libs} Threads::Threads)
target_link_libraries(leat_so PRIVATE ${leat_libs} Threads::Threads)
target_include_directories(leat_archive INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_include_directories(leat_so INTERFACE ${PROJECT_SOURCE_DIR}/include)
if(LEAT_SANITIZE)
    target_link_options(leat_so PRIVATE -fsanitize=${LEAT_SANITIZE})
else()
    target_link_options(leat_so PRIVATE -Wl,-z,defs)
endif()

install(TARGETS leat_archive leat_so)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/leat TYPE INCLUDE FILES_MATCHING PATTERN "*.h")

# leat.pc names the prefix, which `cmake --install --prefix` may change: written at install time.
file(READ ${PROJECT_SOURCE_DIR}/cmake/leat.pc.in leat_pc)
string(CONFIGURE "${leat_pc}" leat_pc @ONLY)
install(CODE "
    set(pc \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig/leat.pc\")
    message(STATUS \"Installing: \${pc}\")
    file(WRITE \"\${pc}\" \"prefix=\${CMAKE_INSTALL_PREFIX}\\n\" [=[${leat_pc}]=])
    file(CHMOD \"\${pc}\" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)")

# libleat-media: RTP and media feedback alone, for programs that want neither QUIC nor what it stands on.
# libleat has all of it too: a program links one of the two.
set(leat_media_objects "")
foreach(module base mem media)
    list(APPEND leat_media_objects $<TARGET_OBJECTS:leat_${module}_objects>)
endforeach()
add_library(leat_media_archive STATIC ${leat_media_objects})
add_library(leat_media_so SHARED ${leat_media_objects})
set_target_properties(leat_media_archive leat_media_so PROPERTIES
    OUTPUT_NAME leat-media LINKER_LANGUAGE C)
set_target_properties(leat_media_so PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${leat_soversion})
if(LEAT_SANITIZE)
    target_link_options(leat_media_so PRIVATE -fsanitize=${LEAT_SANITIZE})
else()
    target_link_options(leat_media_so PRIVATE -Wl,-z,defs)
endif()
install(TARGETS leat_media_archive leat_media_so)
file(READ ${PROJECT_SOURCE_DIR}/cmake/leat-media.pc.in leat_media_pc)
string(CONFIGURE "${leat_media_pc}" leat_media_pc @ONLY)
install(CODE "
    set(pc \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig/leat-media.pc\")
    message(STATUS \"Installing: \${pc}\")
    file(WRITE \"\${pc}\" \"prefix=\${CMAKE_INSTALL_PREFIX}\\n\" [=[${leat_media_pc}]=])
    file(CHMOD \"\${pc}\" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)")
