# What `cmake --install` copies: the programs, the runtime as a package (`find_package(ogc)`, target ogc::runtime), and its headers.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(runtime_libraries ogc-runtime ogc-runtime-cuda ogc-runtime-cpu ogc-runtime-driver ogc-runtime-select ogc-format)
target_include_directories(ogc-runtime INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime_lib/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(ogc::runtime ALIAS ogc-runtime)
set_target_properties(ogc-runtime PROPERTIES EXPORT_NAME runtime)
install(TARGETS ${runtime_libraries} EXPORT ogc-runtime DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY runtime_lib/include/ogc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ogc-runtime NAMESPACE ogc:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ogc)
file(WRITE ${PROJECT_BINARY_DIR}/ogcConfig.cmake "include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(\${CMAKE_CURRENT_LIST_DIR}/ogc-runtime.cmake)
")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ogcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ogcConfig.cmake ${PROJECT_BINARY_DIR}/ogcConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ogc)
if(OGC_BUILD_PROGRAMS)
  install(TARGETS ogc-rt DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(OGC_BUILD_COMPILER)
    # The packages' libraries lie outside of the loader's folders.
    set_target_properties(ogc ogc-opt PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ogc ogc-opt DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endif()
