//===- RegionText.h - what tells kernel regions apart ---------------------===//
#ifndef OGC_DIALECT_KERN_REGIONTEXT_H
#define OGC_DIALECT_KERN_REGIONTEXT_H

#include "compiler/dialect/kern/Kern.h"
#include <string>

namespace ogc::kern {

/// The text of a region without locations and without the names of values outside: equal texts are equal kernels. Regions hold no
/// big constants, so the text is short.
std::string textOf(RegionOp region);

} // namespace ogc::kern

#endif
