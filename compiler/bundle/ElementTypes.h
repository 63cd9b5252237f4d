//===- ElementTypes.h - MLIR's element types and those of a bundle --------===//
#ifndef OGC_BUNDLE_ELEMENT_TYPES_H
#define OGC_BUNDLE_ELEMENT_TYPES_H

#include "runtime_lib/format/DataType.h"

#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace ogc::bundle {

/// The bundle's type of `type`: signless integers are signed, i1 is Bool. Nothing where a bundle has no such type.
std::optional<format::DataType> dataTypeOf(mlir::Type type);

/// The way back.
mlir::Type mlirTypeOf(format::DataType type, mlir::MLIRContext *context);

} // namespace ogc::bundle

#endif
