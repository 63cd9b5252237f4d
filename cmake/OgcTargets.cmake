# Warnings, sanitizers, linker and compiler cache for all targets of the project, the functions that declare libraries, and the one that embeds text.

find_program(OGC_CCACHE ccache)
if(OGC_CCACHE)
  # ccache leaves every file with a precompiled header alone unless these are given.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${OGC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

set(OGC_COMPILE_OPTIONS -Wall -Wextra -Wno-unused-parameter -fvisibility-inlines-hidden)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # Precompiled headers carry no time stamp, so that ccache can reuse them.
  list(APPEND OGC_COMPILE_OPTIONS -Xclang -fno-pch-timestamp)
  add_link_options(-fuse-ld=lld)
endif()
if(OGC_WERROR)
  list(APPEND OGC_COMPILE_OPTIONS -Werror)
endif()
if(OGC_SANITIZE)
  add_compile_options(-fsanitize=${OGC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${OGC_SANITIZE})
endif()

# ogc_add_library(NAME [DEPS target...] [NO_PCH]): a static library of all .cpp files in the current folder. Headers are included by
# their path from the top of the tree, generated ones by their path from the top of the build tree.
function(ogc_add_library name)
  cmake_parse_arguments(ARG "NO_PCH" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
  target_compile_options(${name} PRIVATE ${OGC_COMPILE_OPTIONS})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  if(TARGET ogc-pch AND NOT ARG_NO_PCH)
    target_precompile_headers(${name} REUSE_FROM ogc-pch)
  endif()
endfunction()

# ogc_add_compiler_library(NAME [DEPS target...]): the same for code that uses MLIR.
function(ogc_add_compiler_library name)
  ogc_add_library(${name} ${ARGN})
  get_target_property(type ${name} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    target_link_libraries(${name} PUBLIC ogc-mlir)
  endif()
endfunction()

# ogc_add_pass_library(NAME [DEPS target...]): a compiler library whose folder holds a Passes.td.
function(ogc_add_pass_library name)
  ogc_add_compiler_library(${name} ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  string(SUBSTRING ${folder} 0 1 head)
  string(SUBSTRING ${folder} 1 -1 tail)
  string(TOUPPER ${head} head)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name ${head}${tail})
  add_public_tablegen_target(${name}-passes-inc)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    add_dependencies(${name} ${name}-passes-inc)
  endif()
endfunction()

# ogc_embed_files(OUTPUT PREFIX SUFFIX file...): a C++ table of {name, text} of text files, made in the build tree; a name is PREFIX, the
# file's name without its ending, and SUFFIX.
function(ogc_embed_files output prefix suffix)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/EmbedFiles.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARGN}" -DOUTPUT=${output} -DPREFIX=${prefix} -DSUFFIX=${suffix} -P ${script}
    DEPENDS ${ARGN} ${script} VERBATIM)
endfunction()
