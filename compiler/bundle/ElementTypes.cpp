//===- ElementTypes.cpp - MLIR's element types and those of a bundle ------===//
#include "compiler/bundle/ElementTypes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc::bundle {

using format::DataType;

static std::optional<DataType> integerType(IntegerType type) {
  bool isUnsigned = type.isUnsigned();
  switch (type.getWidth()) {
  case 1:
    return DataType::Bool;
  case 2:
    return isUnsigned ? DataType::U2 : DataType::I2;
  case 4:
    return isUnsigned ? DataType::U4 : DataType::I4;
  case 8:
    return isUnsigned ? DataType::U8 : DataType::I8;
  case 16:
    return isUnsigned ? DataType::U16 : DataType::I16;
  case 32:
    return isUnsigned ? DataType::U32 : DataType::I32;
  case 64:
    return isUnsigned ? DataType::U64 : DataType::I64;
  default:
    return std::nullopt;
  }
}

std::optional<DataType> dataTypeOf(Type type) {
  return llvm::TypeSwitch<Type, std::optional<DataType>>(type)
      .Case([](IntegerType integer) { return integerType(integer); })
      .Case([](Float16Type) { return DataType::F16; })
      .Case([](BFloat16Type) { return DataType::BF16; })
      .Case([](Float32Type) { return DataType::F32; })
      .Case([](Float64Type) { return DataType::F64; })
      .Case([](Float8E4M3FNType) { return DataType::F8E4M3FN; })
      .Case([](Float8E5M2Type) { return DataType::F8E5M2; })
      .Case([](Float8E4M3FNUZType) { return DataType::F8E4M3FNUZ; })
      .Case([](Float8E5M2FNUZType) { return DataType::F8E5M2FNUZ; })
      .Case([](Float8E8M0FNUType) { return DataType::F8E8M0; })
      .Case([](Float6E2M3FNType) { return DataType::F6E2M3; })
      .Case([](Float6E3M2FNType) { return DataType::F6E3M2; })
      .Case([](Float4E2M1FNType) { return DataType::F4E2M1; })
      .Default([](Type) { return std::nullopt; });
}

Type mlirTypeOf(DataType type, MLIRContext *context) {
  Builder b(context);
  switch (type) {
  case DataType::Bool:
    return b.getI1Type();
  case DataType::I8:
    return b.getIntegerType(8);
  case DataType::I16:
    return b.getIntegerType(16);
  case DataType::I32:
    return b.getIntegerType(32);
  case DataType::I64:
    return b.getIntegerType(64);
  case DataType::U8:
    return b.getIntegerType(8, /*isSigned=*/false);
  case DataType::U16:
    return b.getIntegerType(16, /*isSigned=*/false);
  case DataType::U32:
    return b.getIntegerType(32, /*isSigned=*/false);
  case DataType::U64:
    return b.getIntegerType(64, /*isSigned=*/false);
  case DataType::F16:
    return b.getF16Type();
  case DataType::BF16:
    return b.getBF16Type();
  case DataType::F32:
    return b.getF32Type();
  case DataType::F64:
    return b.getF64Type();
  case DataType::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case DataType::F8E5M2:
    return Float8E5M2Type::get(context);
  case DataType::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case DataType::F8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case DataType::F8E8M0:
    return Float8E8M0FNUType::get(context);
  case DataType::F6E2M3:
    return Float6E2M3FNType::get(context);
  case DataType::F6E3M2:
    return Float6E3M2FNType::get(context);
  case DataType::F4E2M1:
    return Float4E2M1FNType::get(context);
  case DataType::I4:
    return b.getIntegerType(4);
  case DataType::U4:
    return b.getIntegerType(4, /*isSigned=*/false);
  case DataType::I2:
    return b.getIntegerType(2);
  case DataType::U2:
    return b.getIntegerType(2, /*isSigned=*/false);
  }
  return Type();
}

} // namespace ogc::bundle
