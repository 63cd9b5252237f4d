# NVRTC and the CUDA headers: from an installed toolkit (OGC_CUDA_ROOT, CUDA_HOME or /usr/local/cuda), else from the PyPI wheels that
# scripts/setup.sh puts into the cache folder. Only headers are needed to build; libnvrtc is opened when a CUDA target is compiled.

set(OGC_CUDA_ROOT "$ENV{CUDA_HOME}" CACHE PATH "CUDA toolkit")
foreach(candidate ${OGC_CUDA_ROOT} /usr/local/cuda ${OGC_CACHE_DIR}/cuda-13.0)
  if(EXISTS ${candidate}/include/nvrtc.h)
    set(OGC_CUDA_DIR ${candidate})
    break()
  endif()
endforeach()
if(NOT OGC_CUDA_DIR)
  message(FATAL_ERROR "CUDA headers not found: set OGC_CUDA_ROOT, or run scripts/setup.sh, which fetches them")
endif()
message(STATUS "CUDA headers and NVRTC: ${OGC_CUDA_DIR}")
add_library(ogc-nvrtc INTERFACE)
target_include_directories(ogc-nvrtc SYSTEM INTERFACE ${OGC_CUDA_DIR}/include)
target_compile_definitions(ogc-nvrtc INTERFACE OGC_CUDA_DIR="${OGC_CUDA_DIR}")
target_link_libraries(ogc-nvrtc INTERFACE ${CMAKE_DL_LIBS})
