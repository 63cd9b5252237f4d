/*===- Exports.c - the shared library has no code of its own ----------------===*
 * CMake wants a source file; everything comes from the static libraries.
 *===------------------------------------------------------------------------===*/
#include "runtime_lib/include/ogc/runtime.h"
