# MLIR/LLVM 22 from Debian's packages, as shared libraries; the interface target ogc-mlir; the precompiled header.

option(OGC_STATIC "link LLVM, MLIR and protobuf statically: a compiler in one file, to carry to another machine" OFF)
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "MLIR is ${LLVM_PACKAGE_VERSION}, expected 22")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
include(TableGen)
include(AddLLVM)
include(AddMLIR)
# Dialect definitions include each other by their path from the top of the tree.
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

add_library(ogc-mlir INTERFACE)
target_include_directories(ogc-mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
separate_arguments(ogc_llvm_definitions UNIX_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(ogc-mlir INTERFACE ${ogc_llvm_definitions})
if(OGC_STATIC)
  # The archives by path, in one linker script: the exported static targets would pull in the shared libraries too.
  file(GLOB ogc_llvm_archives ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
  list(JOIN ogc_llvm_archives " " ogc_llvm_archives)
  file(WRITE ${CMAKE_BINARY_DIR}/llvm-archives.ld "GROUP(${ogc_llvm_archives})\n")
  target_link_libraries(ogc-mlir INTERFACE ${CMAKE_BINARY_DIR}/llvm-archives.ld -l:libzstd.a -l:libz.a)
  target_link_options(ogc-mlir INTERFACE -static-libstdc++ -static-libgcc)
else()
  # The archives of lld use zlib and zstd by themselves.
  target_link_libraries(ogc-mlir INTERFACE MLIR LLVM z zstd)
endif()

add_library(ogc-pch STATIC ${CMAKE_SOURCE_DIR}/cmake/Pch.cpp)
target_include_directories(ogc-pch PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_options(ogc-pch PRIVATE ${OGC_COMPILE_OPTIONS})
target_link_libraries(ogc-pch PUBLIC ogc-mlir)
target_precompile_headers(ogc-pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/Pch.h)
