# The onnx C++ libraries, built once by scripts/build_onnx.sh into a cache folder outside the tree.

set(OGC_ONNX_VERSION 1.23.2)
set(OGC_CACHE_DIR "$ENV{OGC_CACHE_DIR}" CACHE PATH "folder of dependencies built once")
if(NOT OGC_CACHE_DIR)
  set(OGC_CACHE_DIR "$ENV{HOME}/.cache/ogc")
endif()
set(Protobuf_USE_STATIC_LIBS ${OGC_STATIC})
find_package(Protobuf REQUIRED)
find_package(ONNX CONFIG REQUIRED PATHS ${OGC_CACHE_DIR}/onnx-${OGC_ONNX_VERSION} NO_DEFAULT_PATH)

add_library(ogc-onnx INTERFACE)
get_target_property(ogc_onnx_includes ONNX::onnx INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(ogc-onnx SYSTEM INTERFACE ${ogc_onnx_includes})
target_link_libraries(ogc-onnx INTERFACE ONNX::onnx protobuf::libprotobuf)
